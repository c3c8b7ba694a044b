package storetest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestBodiesComeBack: whatever the threshold, each body is what came in: before a seal and after, from a new handle, archived.
func TestBodiesComeBack(t *testing.T) {
	ctx := context.Background()
	for _, threshold := range []int64{0, 1, 1024, 100_000, -1} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			dir := t.TempDir()
			s := kit.Must[*engine.Store](t)(kit.Init(dir, engine.WithTextThreshold(threshold)))
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
			bodies := kit.Samples()
			var drafts []engine.Draft
			for _, b := range bodies[1:] {
				drafts = append(drafts, engine.Draft{Body: []byte(b)})
			}
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(bodies[0])})
			kit.Must[[]engine.BatchResult](t)(c.Active().AppendBatch(ctx, drafts))
			compare := func(stage string, c *engine.Context) {
				t.Helper()
				ms := kit.Load(t, c.Active())
				all, err := loader.Bodies(ctx, ms)
				if err != nil || len(ms) != len(bodies) {
					t.Fatalf("%s: %d messages, %v", stage, len(ms), err)
				}
				for i, m := range ms {
					if kit.BodyOf(m) != bodies[i] || string(all[i]) != bodies[i] {
						t.Errorf("%s: body %d is %.100s, wanted %.100s", stage, i, kit.BodyOf(m), bodies[i])
					}
				}
			}
			compare("as appended", c)
			other := kit.Must[*engine.Context](t)(kit.Must[*engine.Store](t)(kit.Open(dir)).Context(ctx, c.ID()))
			compare("from a new handle", other)
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.Seal(ctx); err != nil {
				t.Fatal(err)
			}
			compare("sealed", c)
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
			kit.Check(t, c.Close())
			again := kit.Must[*engine.Context](t)(kit.Must[*engine.Store](t)(kit.Open(dir)).Context(ctx, c.ID()))
			compare("archived", again)
			kit.Check(t, again.Close())
			if threshold < 0 && len(kit.BlobFiles(t, dir)) != 2 {
				t.Errorf("%d blobs, wanted the two pictures", len(kit.BlobFiles(t, dir)))
			}
		})
	}
}

// TestOnePayloadOneBlob: a picture in 200 messages, and an answer that six forks got, are stored once.
func TestOnePayloadOneBlob(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10))
	dir := filepath.Dir(folder)
	img := `{"role":"user","content":[` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + kit.Picture(3, 20_000) + `"}},` +
		`{"type":"text","text":"%d"}]}`
	for i := range 200 {
		kit.Append(t, c.Active(), engine.Draft{Body: fmt.Appendf(nil, img, i)})
	}
	answer := `{"role":"assistant","content":"` + strings.Repeat("because ", 1000) + `"}`
	for i := range 6 {
		b := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, fmt.Sprint("fork", i), 10))
		kit.Append(t, b, engine.Draft{Body: []byte(answer)})
	}
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	if paths := kit.BlobFiles(t, dir); len(paths) != 2 {
		t.Errorf("%d blobs, wanted 2", len(paths))
	}
	ms := kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, 150, 151))
	refs, err := ms[0].Payloads()
	if err != nil || len(refs) != 1 || refs[0].MediaType != "image/png" || refs[0].Size != 19998 || refs[0].Path != "/content/0/source/data" {
		t.Errorf("payloads %+v, %v", refs, err)
	}
	r, size, err := ms[0].Open(refs[0])
	if err != nil || size != 19998 {
		t.Fatal(size, err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || len(b) != 19998 || b[4] != 3 {
		t.Errorf("the picture is %d bytes, %v", len(b), err)
	}
}

// TestMissingBlob: a blob that is gone or damaged costs its payload, and nothing else.
func TestMissingBlob(t *testing.T) {
	ctx := context.Background()
	for name, spoil := range map[string]func(path string) error{
		"gone":    os.Remove,
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"flipped": func(path string) error { return flip(path, 30) },
	} {
		t.Run(name, func(t *testing.T) {
			c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10))
			dir := filepath.Dir(folder)
			first := `{"role":"tool","content":"` + strings.Repeat("abcdefg ", 1000) + `","keep":"me"}`
			second := `{"role":"tool","content":"` + strings.Repeat("hijklmn ", 1000) + `"}`
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(first)})
			if err := c.Seal(ctx); err != nil {
				t.Fatal(err)
			}
			paths := kit.BlobFiles(t, dir)
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(second)})
			if err := errors.Join(c.Seal(ctx), spoil(paths[0])); err != nil {
				t.Fatal(err)
			}
			fresh := kit.Must[*engine.Context](t)(kit.Must[*engine.Store](t)(kit.Open(dir)).Context(ctx, c.ID()))
			defer fresh.Close()
			ms := kit.Load(t, fresh.Active())
			body, err := ms[0].Body(ctx)
			var u *engine.UnavailableError
			if !errors.As(err, &u) || u.Ref.Size != 8000 || !strings.Contains(string(body), `"keep":"me"`) || ms[0].Unavailable != nil {
				t.Errorf("body %.80s, %v", body, err)
			}
			if kit.BodyOf(ms[1]) != second {
				t.Errorf("the other message: %.80s", kit.BodyOf(ms[1]))
			}
			// Appending the payload again heals it.
			kit.Append(t, c.Active(), engine.Draft{ID: uuid.New(), Body: []byte(first)})
			if err := c.Seal(ctx); err != nil {
				t.Fatal(err)
			}
			if got := kit.BodyOf(kit.Load(t, fresh.Active())[0]); got != first {
				t.Errorf("after the payload came again: %.80s", got)
			}
		})
	}
}

func flip(path string, at int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[at] ^= 0x40
	return os.WriteFile(path, b, 0o600)
}

// TestEditedReference: a string put back by hand in the place of its reference is valid, and the next write of the
// message moves it again.
func TestEditedReference(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10))
	text := strings.Repeat("something long ", 200)
	body := `{"role":"tool","content":"` + text + `","n":1}`
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)})
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))
	edited := strings.Replace(body, `"n":1`, `"n":2`, 1)
	path := filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, m.Stored, []byte(edited), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	m = kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))
	if refs, err := m.Payloads(); !m.Edited || kit.BodyOf(m) != edited || err != nil || len(refs) != 0 {
		t.Fatalf("edited %v, %d payloads, %v, %.100s", m.Edited, len(refs), err, kit.BodyOf(m))
	}
	if err := c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(kit.BodyOf(m))}); err != nil {
		t.Fatal(err)
	}
	m = kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))
	if refs, err := m.Payloads(); m.Edited || kit.BodyOf(m) != edited || err != nil || len(refs) != 1 {
		t.Errorf("after the next write: edited %v, %d payloads, %v, %.100s", m.Edited, len(refs), err, kit.BodyOf(m))
	}
}

// TestAttachments: a file becomes a payload in its place without passing through memory, retried or not.
func TestAttachments(t *testing.T) {
	ctx := context.Background()
	for _, threshold := range []int64{0, -1} {
		c, _ := kit.NewContext(t, engine.WithTextThreshold(threshold))
		content := bytes.Repeat([]byte("\x00\xff attached "), 100_000)
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		d := engine.Draft{
			ID: uuid.New(), Body: []byte(`{"role":"user","content":[{"text":""},{"data":""}]}`),
			Attachments: []engine.Attachment{{At: "/content/1/data", MediaType: "application/x", Open: open}},
		}
		want := `{"role":"user","content":[{"text":""},{"data":"` + base64.StdEncoding.EncodeToString(content) + `"}]}`
		at := kit.Append(t, c.Active(), d)
		again := kit.Append(t, c.Active(), d)
		m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))
		refs, err := m.Payloads()
		if err != nil || kit.BodyOf(m) != want || !again.Existed || len(m.Stored) > 2000 || refs[len(refs)-1].MediaType != "application/x" {
			t.Errorf("threshold %d: %v, existed %v, %d bytes stored, %.100s", threshold, err, again.Existed, len(m.Stored), kit.BodyOf(m))
		}
	}
}

// TestReadOnlyMakesNoBlob: in a store that is open for reading nothing is changed, a blob included.
func TestReadOnlyMakesNoBlob(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t)
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":1}`)})
	dir := filepath.Dir(folder)
	before := kit.Tree(t, dir)
	s := kit.Must[*engine.Store](t)(kit.Open(dir, engine.ReadOnly()))
	r := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	defer r.Close()
	large := engine.Draft{Body: []byte(kit.LargeBody("r"))}
	_, appending := r.Active().Append(ctx, large)
	_, externalising := archiving.Externalise(ctx, r, 0, false)
	replacing := r.Active().Replace(ctx, at.ID, large)
	for what, err := range map[string]error{"append": appending, "replace": replacing, "externalise": externalising} {
		if !errors.Is(err, engine.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := kit.Tree(t, dir); after != before {
		t.Errorf("the store has changed:\n%s\nwas\n%s", after, before)
	}
}

// TestLongEdit: a file of more than a MiB that was made longer by hand is an edit too: it is served and stays.
func TestLongEdit(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithTextThreshold(-1))
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"text":"` + strings.Repeat("long ", 400_000) + `"}`)})
	path := filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, []byte("long long"), []byte("by hand, and longer"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"edited", "sealed"} {
		if err := c.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))
		if m.Unavailable != nil || !m.Edited || !strings.Contains(kit.BodyOf(m), "by hand") {
			t.Errorf("%s: unavailable %v, edited %v", stage, m.Unavailable, m.Edited)
		}
		if err := c.Seal(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
