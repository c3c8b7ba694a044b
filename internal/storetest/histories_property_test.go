package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// historian writes histories of one context.
type historian struct {
	t     *rapid.T
	s     *engine.Store
	id    uuid.UUID
	dir   string // the context's folder
	steps int
	// damaged says that a part of the history is missing: until a repair, nothing can be sealed.
	damaged bool
	before  map[string]string
}

func (h *historian) must(errs ...error) {
	h.t.Helper()
	if err := errors.Join(errs...); err != nil {
		h.t.Fatal(err)
	}
}

// may is must for what fails where a part of the history is missing.
func (h *historian) may(err error) {
	h.t.Helper()
	if !h.damaged || !errors.Is(err, engine.ErrDamaged) {
		h.must(err)
	}
}

// use does something with a handle of its own.
func (h *historian) use(do func(c *engine.Context)) {
	h.t.Helper()
	c, err := h.s.Context(context.Background(), h.id)
	h.must(err)
	defer c.Close()
	do(c)
}

// write does what a program may do to a context, and returns what was acknowledged.
func (h *historian) write(name string, most int) (acked []uuid.UUID) {
	h.t.Helper()
	h.use(func(c *engine.Context) {
		for range rapid.IntRange(0, most).Draw(h.t, name) {
			if id := h.step(c); id != uuid.Nil {
				acked = append(acked, id)
			}
			if h.before != nil {
				_, after := h.intact(h.dir)
				for m, at := range h.before {
					if after[m] == "" {
						h.t.Fatalf("%.60s was in %s, and is nowhere now", m, at)
					}
				}
			}
		}
	})
	return acked
}

// step does one thing, and returns the message if it was an append.
func (h *historian) step(c *engine.Context) (appended uuid.UUID) {
	ctx := context.Background()
	h.steps++
	infos, err := c.Branches(ctx)
	h.must(err)
	b, err := c.Branch(infos[rapid.IntRange(0, len(infos)-1).Draw(h.t, "branch")].Name)
	h.must(err)
	n, err := b.Len(ctx)
	h.must(err)
	switch rapid.IntRange(0, 9).Draw(h.t, "step") {
	case 0:
		_, err = b.Fork(ctx, fmt.Sprint("b", h.steps), rapid.Int64Range(0, n).Draw(h.t, "at"))
	case 1, 2:
		h.may(c.Seal(ctx))
	case 3:
		_, err := kit.Archive(ctx, c, archiving.Options{})
		h.may(err)
	case 4:
		if n > 0 && len(infos) == 1 {
			ms, err := b.Last(ctx, 1)
			h.must(err)
			if ms[0].ID != uuid.Nil { // of a lost message, not even the id may be known
				h.must(b.Replace(ctx, ms[0].ID, engine.Draft{Body: fmt.Appendf(nil, `{"version":%d}`, h.steps)}))
			}
		}
	default:
		text := bytes.Repeat([]byte("word "), rapid.SampledFrom([]int{1, 5, 60}).Draw(h.t, "words"))
		a, aerr := b.Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, h.steps, text)})
		appended, err = a.ID, aerr
	}
	h.must(err)
	return appended
}

// intact returns the newest version of each message that some file below a folder holds whole, and the file; all are the
// other versions, too.
func (h *historian) intact(dir string) (newest, all map[string]string) {
	h.t.Helper()
	newest, all = map[string]string{}, map[string]string{}
	last := map[uuid.UUID]message.Envelope{}
	add := func(path string, raw []byte) {
		env, err := message.Parse(bytes.TrimSpace(raw))
		if err != nil {
			return
		}
		all[env.ID.String()+" "+string(env.Body)] = strings.TrimPrefix(path, dir)
		if !env.StoredAt.Before(last[env.ID].StoredAt) {
			last[env.ID] = env
		}
	}
	h.must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if _, segment := archive.ParseName(e.Name()); segment {
			folder, err := vfs.OS(filepath.Dir(path))
			h.must(err)
			defer folder.Close()
			s, err := archive.Open(folder, e.Name())
			h.must(err)
			defer s.Close()
			for raw, err := range s.Envelopes() {
				h.must(err)
				add(path, raw)
			}
			return nil
		}
		raw, err := os.ReadFile(path)
		for line := range bytes.Lines(bytes.TrimRight(raw, "\n")) { // a log has blank space
			add(path, line)
			for _, member := range []string{`"body":`, `"envelope":`} { // of a record, and of a version in the trash
				if _, body, ok := bytes.Cut(bytes.TrimSpace(line), []byte(member)); ok {
					add(path, bytes.TrimSuffix(body, []byte("}")))
				}
			}
		}
		return err
	}))
	for id, env := range last {
		text := id.String() + " " + string(env.Body)
		newest[text] = all[text]
	}
	return newest, all
}

// shown returns the messages that branches show, as intact does, and their ids.
func (h *historian) shown() map[string]bool {
	h.t.Helper()
	ctx, all := context.Background(), map[string]bool{}
	h.use(func(c *engine.Context) {
		infos, err := c.Branches(ctx)
		h.must(err)
		for _, info := range infos {
			b, err := c.Branch(info.Name)
			h.must(err)
			ms, err := b.Load(ctx)
			h.must(err)
			for _, m := range ms {
				all[m.ID.String()] = true
				if m.Unavailable == nil {
					all[m.ID.String()+" "+string(m.Stored)] = true
				}
			}
		}
	})
	return all
}

// check returns what a check finds wrong.
func (h *historian) check() (wrong []integrity.Finding) {
	h.t.Helper()
	for f, err := range checking.Check(context.Background(), h.s, nil, checking.Options{ReadData: true}) {
		h.must(err)
		if f.Severity != integrity.SeverityInfo {
			wrong = append(wrong, f)
		}
	}
	return wrong
}

func (h *historian) repair(o checking.Options) {
	h.t.Helper()
	for r, err := range checking.Repair(context.Background(), h.s, nil, o) {
		h.t.Logf("REPAIR %+v", r)
		h.must(err)
	}
}

// mix lays some files of one history of the context over those of another one, but no metadata.json, which would count if it
// were of a later revision.
func (h *historian) mix(root string) {
	h.write("together", 12)
	origin, one, other := root+"/origin", root+"/one", root+"/other"
	h.must(copyTree(h.dir, origin))
	h.write("one", 16)
	h.must(copyTree(h.dir, one), os.RemoveAll(h.dir), copyTree(origin, h.dir))
	if !rapid.Bool().Draw(h.t, "the other is only older") {
		h.write("other", 16)
	}
	h.must(copyTree(h.dir, other), os.RemoveAll(h.dir))
	base, over := one, other
	if rapid.Bool().Draw(h.t, "the other way round") {
		base, over = over, base
	}
	share := rapid.SampledFrom([]int{2, 5, 10}).Draw(h.t, "share")
	h.must(copyTree(base, h.dir), filepath.WalkDir(over, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && path == over || rapid.IntRange(0, 9).Draw(h.t, e.Name()) >= share {
			return err
		}
		if e.IsDir() {
			return nil
		}
		target := filepath.Join(h.dir, strings.TrimPrefix(path, over))
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o700), copyTree(path, target))
	}), os.Remove(filepath.Join(h.dir, ctxfolder.MetadataFile)))
}

// TestHistoriesMixed lays some files of one history of a context over those of another one, and works on. What is
// acknowledged from then on stays; a check tells that there are messages which are not shown; a repair settles it; nothing
// that was intact is destroyed.
func TestHistoriesMixed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp("", "ctxdir-histories-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		h := &historian{t: rt}
		h.s, err = kit.Init(filepath.Join(root, "store"), kit.Manual(200)...)
		h.must(err)
		defer h.s.Close()
		c, err := h.s.Create(context.Background(), engine.Metadata{})
		h.must(err)
		h.id, h.dir = c.ID(), filepath.Join(root, "store", c.ID().String())
		h.must(c.Close())
		h.mix(root)

		before, _ := h.intact(h.dir)
		told, shown := h.check(), h.shown()
		for m, at := range before {
			if !shown[m] && len(told) == 0 && !strings.HasPrefix(at, "/trash/") {
				rt.Fatalf("a check is silent, and %.60s in %s is not shown", m, at)
			}
		}
		h.damaged = slices.ContainsFunc(told, func(f integrity.Finding) bool { return f.Severity == integrity.SeverityError })
		h.before = before
		acked := h.write("after", 30)
		there := func(when string) {
			rt.Helper()
			all := h.shown()
			for _, id := range acked {
				if !all[id.String()] {
					rt.Fatalf("%s: %s was acknowledged and is gone", when, id)
				}
			}
			_, after := h.intact(h.dir)
			for m, at := range before {
				if after[m] == "" {
					rt.Fatalf("%s: %.60s was intact in %s and is destroyed", when, m, at)
				}
			}
		}
		there("after appends")
		for _, adopt := range []bool{false, true} {
			h.repair(checking.Options{Adopt: adopt})
			h.damaged = false
			h.use(func(c *engine.Context) { h.must(c.Seal(context.Background())) })
			there(fmt.Sprint("after a repair, adopt ", adopt))
			for _, f := range h.check() {
				if f.Repairable || f.Severity == integrity.SeverityError || adopt && f.Kind == integrity.KindForeign {
					rt.Fatalf("after a repair, adopt %v: %+v", adopt, f)
				}
			}
		}
	})
}
