package ctxdir_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// referring is a context with a message that has references.
type referring struct {
	t  *testing.T
	s  *ctxdir.Store
	c  *ctxdir.Context
	id uuid.UUID
}

const someReferences = `[{"file":"a.go","lines":[1,2],"later":"\u003c&\ud83d","n":1.0},{"file":"b.go"}]`

func newReferring(t *testing.T) *referring {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	r := &referring{t, s, c, uuid.NewSHA1(c.ID(), []byte("first"))}
	r.must(c.Active().Append(t.Context(), ctxdir.Draft{
		ID: r.id, References: json.RawMessage(" " + strings.ReplaceAll(someReferences, ":", " : ")),
		Body: json.RawMessage(`{"role":"user","content":"x"}`),
	}))
	return r
}

func (r *referring) must(_ any, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// check compares the references of the message on a branch.
func (r *referring) check(what string, c *ctxdir.Context, branch, want string) {
	r.t.Helper()
	b, err := c.Branch(branch)
	r.must(nil, err)
	m, err := b.Message(r.t.Context(), r.id)
	r.must(nil, err)
	if string(m.References) != want || m.Unavailable != nil {
		r.t.Errorf("%s: %s, wanted %s", what, m.References, want)
	}
	if body, err := m.Body(r.t.Context()); err != nil || strings.Contains(string(body), "a.go") {
		r.t.Errorf("%s: the body is %s, %v", what, body, err)
	}
}

// reopen closes the context and opens it again.
func (r *referring) reopen() {
	r.t.Helper()
	r.must(nil, r.c.Close())
	c, err := r.s.Open(r.t.Context(), r.c.ID())
	r.must(nil, err)
	r.c = c
}

// TestReferencesStay: every operation keeps the references of a message as they were given.
func TestReferencesStay(t *testing.T) {
	r, ctx := newReferring(t), context.Background()
	r.check("after an append", r.c, "main", someReferences)
	r.reopen()
	r.check("after a seal", r.c, "main", someReferences)
	fork, err := r.c.Active().Fork(ctx, "fork", 1)
	r.must(nil, err)
	r.check("on a fork", r.c, "fork", someReferences)
	r.must(fork.Append(ctx, ctxdir.Draft{Body: json.RawMessage(`{"a":1}`)}))
	for _, n := range []int64{1, 2} { // the second copy has messages of two lines
		other, err := fork.Copy(ctx, n, ctxdir.Metadata{})
		r.must(nil, err)
		r.check("in a copy", other, "main", someReferences)
		r.must(nil, other.Close())
	}
	to, err := ctxdir.Init(t.TempDir())
	r.must(nil, err)
	defer to.Close()
	r.must(r.s.Backup(ctx, r.c.ID(), to))
	saved, err := to.Open(ctx, r.c.ID())
	r.must(nil, err)
	r.check("in a backup", saved, "main", someReferences)
	r.must(nil, saved.Close())

	r.must(r.c.Admin().Externalise(ctx, 1, false))
	r.check("after another threshold", r.c, "main", someReferences)
	r.must(nil, r.c.Close())
	r.must(r.s.Archive(ctx, ctxdir.ArchiveOptions{Contexts: []uuid.UUID{r.c.ID()}}))
	r.reopen()
	r.check("archived", r.c, "main", someReferences)
	r.must(r.c.Admin().Unarchive(ctx, nil))
	r.check("no longer archived", r.c, "main", someReferences)

	for _, damage := range []string{"metadata.json", "messages"} {
		r.must(nil, r.c.Admin().Seal(ctx))
		r.must(nil, r.c.Close())
		found, _ := filepath.Glob(filepath.Join(r.s.Info().Path, r.c.ID().String(), damage))
		if len(found) == 0 {
			t.Fatalf("no file %s", damage)
		}
		for _, path := range found {
			r.must(nil, os.RemoveAll(path))
		}
		r.must(r.s.Repair(ctx, ctxdir.RepairOptions{All: true}))
		r.reopen()
		r.check("after a repair of "+damage, r.c, "main", someReferences)
	}
}

// TestReferencesEdited: an edit by hand of the references counts, and a repair keeps it.
func TestReferencesEdited(t *testing.T) {
	r, ctx := newReferring(t), context.Background()
	r.must(nil, r.c.Close())
	files, err := filepath.Glob(filepath.Join(r.s.Info().Path, r.c.ID().String(), "messages", "*", r.id.String()+".json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	r.must(nil, err)
	edited := strings.Replace(string(b), someReferences, `[ {"file" : "c.go"} ]`, 1)
	if edited == string(b) {
		t.Fatalf("the file is %s", b)
	}
	r.must(nil, os.WriteFile(files[0], []byte(edited), 0o600))
	r.reopen()
	r.check("after an edit", r.c, "main", `[{"file":"c.go"}]`)
	r.must(r.s.Repair(ctx, ctxdir.RepairOptions{All: true}))
	r.must(nil, r.c.Refresh(ctx))
	r.check("after a repair", r.c, "main", `[{"file":"c.go"}]`)
}

// TestReferencesOfVersions: a replacement without references keeps them, and an empty array removes them.
func TestReferencesOfVersions(t *testing.T) {
	r, ctx := newReferring(t), context.Background()
	draft := ctxdir.Draft{Body: json.RawMessage(`{"role":"user","content":"y"}`)}
	r.must(nil, r.c.Active().Replace(ctx, r.id, draft))
	r.check("after a replacement", r.c, "main", someReferences)
	draft.References = json.RawMessage(`[{"file":"c.go"}]`)
	_, err := r.c.Commit(ctx, func(tx *ctxdir.Tx) error { return tx.Replace("main", r.id, draft) })
	r.must(nil, err)
	r.check("after a replacement with others", r.c, "main", `[{"file":"c.go"}]`)
	draft.References = json.RawMessage(`[ ]`)
	r.must(nil, r.c.Active().Replace(ctx, r.id, draft))
	r.check("after a replacement with none", r.c, "main", "")
	r.id = uuid.New()
	draft.ID, draft.References = r.id, json.RawMessage(`[{"file":"d.go"}]`)
	r.must(r.c.Active().AppendBatch(ctx, []ctxdir.Draft{draft}))
	r.check("in a batch", r.c, "main", `[{"file":"d.go"}]`)
}

func TestReferencesRefused(t *testing.T) {
	r, ctx := newReferring(t), context.Background()
	for references, want := range map[string]error{
		`{"file":"a"}`:                    ctxdir.ErrInvalid,
		`[`:                               ctxdir.ErrInvalid,
		"[\"\xff\"]":                      ctxdir.ErrInvalid,
		strings.Repeat("[", 9_500):        ctxdir.ErrInvalid,
		strings.Repeat(" ", 1<<20) + `[]`: ctxdir.ErrTooLarge,
	} {
		d := ctxdir.Draft{References: json.RawMessage(references), Body: json.RawMessage(`{"a":1}`)}
		if _, err := r.c.Active().Append(ctx, d); !errors.Is(err, want) {
			t.Errorf("%.20s: %v, wanted %v", references, err, want)
		}
		if err := r.c.Active().Replace(ctx, r.id, d); !errors.Is(err, want) {
			t.Errorf("%.20s: %v, wanted %v", references, err, want)
		}
	}
}
