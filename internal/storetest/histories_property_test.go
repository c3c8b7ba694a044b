package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/engine"
	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// historian writes histories of one context.
type historian struct {
	t     *rapid.T
	s     *engine.Store
	id    uuid.UUID
	dir   string // the context's folder
	steps int
	stuck bool // a journal stays until its messages are taken in
	mixed bool // files of another history are there: the first write may find that a branch is not of this one
}

// gone reports whether a write failed since a branch that the handle showed belongs to the other history.
func (h *historian) gone(ctx context.Context, c *engine.Context, err error) bool {
	h.t.Helper()
	if !h.mixed || !errors.Is(err, engine.ErrNotExist) {
		h.must(err)
		return false
	}
	h.must(c.Refresh(ctx))
	return true
}

func (h *historian) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// may is must for what fails where a journal stays because it holds the last copy of a message.
func (h *historian) may(err error) {
	h.t.Helper()
	if err != nil {
		if h.stuck = strings.Contains(err.Error(), "the only good copy"); !h.stuck {
			h.t.Fatal(err)
		}
	}
}

// write does what a program may do to a context, and returns what was acknowledged.
func (h *historian) write(name string, most int) (acked []uuid.UUID) {
	h.t.Helper()
	ctx := context.Background()
	c, err := h.s.Context(ctx, h.id)
	h.must(err)
	defer c.Close()
	for range rapid.IntRange(0, most).Draw(h.t, name) {
		h.steps++
		infos, err := c.Branches(ctx)
		h.must(err)
		b, err := c.Branch(infos[rapid.IntRange(0, len(infos)-1).Draw(h.t, "branch")].Name)
		h.must(err)
		switch rapid.IntRange(0, 11).Draw(h.t, "step") {
		case 0:
			n, err := b.Len(ctx)
			h.must(err)
			_, err = b.Fork(ctx, fmt.Sprint("b", h.steps), rapid.Int64Range(0, n).Draw(h.t, "at"))
			h.gone(ctx, c, err)
		case 1:
			h.may(c.Log.Fold(ctx, false))
		case 2:
			h.may(c.Fold(ctx))
		case 3:
			_, err := c.Archive(ctx, engine.ArchiveOptions{})
			h.may(err)
		case 4:
			ms, err := b.Load(ctx)
			h.must(err)
			if len(ms) > 0 {
				m := ms[rapid.IntRange(0, len(ms)-1).Draw(h.t, "message")]
				if m.Unavailable == nil && len(infos) == 1 {
					h.must(b.Replace(ctx, m.ID, engine.Draft{Body: fmt.Appendf(nil, `{"version":%d}`, h.steps)}))
				}
			}
		default:
			text := bytes.Repeat([]byte("word "), rapid.SampledFrom([]int{1, 5, 60}).Draw(h.t, "words"))
			a, err := b.Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, h.steps, text)})
			if !h.gone(ctx, c, err) {
				acked = append(acked, a.ID)
			}
		}
	}
	return acked
}

// save copies the context's folder.
func (h *historian) save(to string) {
	h.t.Helper()
	h.must(copyTree(h.dir, to))
}

// copyTree copies a folder over another one, as cp -a does.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if e.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return copyWhole(path, target)
	})
}

func copyWhole(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err == nil {
		_ = os.Remove(to)
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, raw, 0o600)
	}
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return err
}

// intact returns every version of every message that some file below a folder holds whole, and the file; newest are the
// last versions of each.
func (h *historian) intact(dir string) (all, newest map[string]string) {
	h.t.Helper()
	all, newest = map[string]string{}, map[string]string{}
	last := map[uuid.UUID]message.Envelope{}
	var index struct{ Journals []int }
	if raw, err := os.ReadFile(filepath.Join(dir, "index.json")); err == nil {
		_ = json.Unmarshal(raw, &index)
	}
	named := func(path string) bool {
		return slices.ContainsFunc(index.Journals, func(gen int) bool { return path == fmt.Sprintf("/journal-%d.jsonl", gen) })
	}
	add := func(path string, raw []byte) {
		env, err := message.Parse(bytes.TrimSpace(raw))
		if err != nil {
			return
		}
		text := env.ID.String() + " " + string(env.Body)
		if all[text] == "" || named(all[text]) {
			all[text] = strings.TrimPrefix(path, dir)
		}
		if !env.StoredAt.Before(last[env.ID].StoredAt) {
			last[env.ID] = env
		}
	}
	h.must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if _, pack := archive.ParseFileName(e.Name()); pack {
			fsys, err := vfs.OS(filepath.Dir(path))
			h.must(err)
			defer fsys.Close()
			for f, err := range archive.Scan(fsys, e.Name()) {
				if err == nil && f.Envelope != nil {
					add(path, f.Envelope)
				}
			}
			return nil
		}
		raw, err := os.ReadFile(path)
		h.must(err)
		for line := range bytes.Lines(raw) {
			add(path, line)
			for _, member := range []string{`"body":`, `"envelope":`} {
				if _, body, ok := bytes.Cut(bytes.TrimSpace(line), []byte(member)); ok {
					add(path, bytes.TrimSuffix(body, []byte("}")))
				}
			}
		}
		return nil
	}))
	for id, env := range last {
		text := id.String() + " " + string(env.Body)
		if named(all[text]) {
			continue // a journal that the context itself lets go of when it is settled
		}
		newest[text] = all[text]
	}
	return all, newest
}

// check returns what a check finds wrong.
func (h *historian) check() (wrong []engine.Finding) {
	h.t.Helper()
	for f, err := range h.s.Check(context.Background(), nil, engine.CheckOptions{ReadData: true}) {
		h.must(err)
		if f.Severity != engine.SeverityInfo {
			wrong = append(wrong, f)
		}
	}
	return wrong
}

func (h *historian) repair(o engine.CheckOptions, must func(error)) {
	h.t.Helper()
	for _, err := range h.s.Repair(context.Background(), nil, o) {
		must(err)
	}
}

// shown returns what the branches show, as intact does.
func (h *historian) shown() map[string]bool {
	h.t.Helper()
	ctx := context.Background()
	c, err := h.s.Context(ctx, h.id)
	h.must(err)
	defer c.Close()
	all := map[string]bool{}
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
	return all
}

// TestHistoriesMixed lays some files of one history of a context over those of another one, and works on. What is
// acknowledged from then on stays; a check tells of every message that is there and not shown; a repair settles it;
// nothing that was intact is destroyed.
func TestHistoriesMixed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		root, err := os.MkdirTemp("", "ctxdir-histories-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		h := &historian{t: rt}
		h.s, err = kit.Init(filepath.Join(root, "store"), kit.Manual(200, engine.WithRetain(2))...)
		h.must(err)
		defer h.s.Close()
		c, err := h.s.Create(ctx, engine.Metadata{})
		h.must(err)
		h.id, h.dir = c.ID(), filepath.Join(root, "store", c.ID().String())
		h.must(c.Close())

		h.write("together", 12)
		h.save(root + "/origin")
		h.write("one", 16)
		h.save(root + "/one")
		h.must(os.RemoveAll(h.dir))
		h.must(copyTree(root+"/origin", h.dir))
		if !rapid.Bool().Draw(rt, "the other is only older") {
			h.write("other", 16)
		}
		h.save(root + "/other")

		base, over := root+"/one", root+"/other"
		if rapid.Bool().Draw(rt, "the other way round") {
			base, over = over, base
		}
		h.must(os.RemoveAll(h.dir))
		h.must(copyTree(base, h.dir))
		share := rapid.SampledFrom([]int{2, 5, 10}).Draw(rt, "share")
		h.must(filepath.WalkDir(over, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || rapid.IntRange(0, 9).Draw(rt, e.Name()) >= share {
				return err
			}
			return copyWhole(path, filepath.Join(h.dir, strings.TrimPrefix(path, over)))
		}))

		_, before := h.intact(h.dir)
		told := h.check()
		shown, trashed := h.shown(), map[string]string{}
		if _, err := os.Stat(h.dir + "/trash"); err == nil {
			trashed, _ = h.intact(h.dir + "/trash")
		}
		for m, at := range before {
			if _, kept := trashed[m]; !shown[m] && !kept && len(told) == 0 {
				rt.Fatalf("a check is silent, and %.60s in %s is not shown", m, at)
			}
		}
		h.mixed = true
		acked := h.write("after", 30)
		there := func(when string) {
			rt.Helper()
			all := h.shown()
			for _, id := range acked {
				if !all[id.String()] {
					rt.Fatalf("%s: %s was acknowledged and is gone", when, id)
				}
			}
			after, _ := h.intact(h.dir)
			for m, at := range before {
				if after[m] == "" {
					rt.Fatalf("%s: %.60s was intact in %s and is destroyed", when, m, at)
				}
			}
		}
		there("after appends")
		c, err = h.s.Context(ctx, h.id)
		h.must(err)
		h.may(c.Fold(ctx))
		h.must(c.Close())
		there("after a fold")
		h.repair(engine.CheckOptions{}, h.may)
		there("after a repair")
		for f, err := range h.s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
			h.must(err)
			if !h.stuck && (f.Repairable || f.Severity == engine.SeverityError) {
				rt.Fatalf("after a repair: %+v", f)
			}
		}
		h.repair(engine.CheckOptions{Adopt: true}, h.must)
		there("after messages were taken in")
		for f, err := range h.s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
			h.must(err)
			if f.Repairable || f.Severity == engine.SeverityError || f.Kind == "message-foreign" {
				rt.Fatalf("after messages were taken in: %+v", f)
			}
		}
	})
}
