package pgfs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// twins are a store in the database and one in a folder that go through the same steps.
type twins struct {
	t      *rapid.T
	disk   *disk
	fsys   *FS
	dir    string
	opts   ctxdir.Options
	stores [2]*ctxdir.Store
	id     uuid.UUID
	c      [2]*ctxdir.Context
	n      int
	ids    []uuid.UUID
}

func (w *twins) check(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

func (w *twins) ctx() context.Context { return context.Background() }

func (w *twins) open(init bool) {
	w.fsys = w.disk.open()
	open := ctxdir.Open
	if init {
		open = ctxdir.Init
	}
	var err error
	in := w.opts
	in.Internal = append(slices.Clone(in.Internal), engine.WithFS(w.fsys))
	w.stores[0], err = open("database", in)
	w.check(err)
	w.stores[1], err = open(w.dir, w.opts)
	w.check(err)
}

func (w *twins) close() {
	for i := range w.stores {
		w.check(w.c[i].Close())
		w.check(w.stores[i].Close())
	}
	w.check(w.fsys.Close())
}

// both runs a step in each store and compares what it says.
func (w *twins) both(what string, run func(c *ctxdir.Context, s *ctxdir.Store) (string, error)) {
	w.t.Helper()
	var said [2]string
	for i := range said {
		s, err := run(w.c[i], w.stores[i])
		said[i] = s
		if err != nil {
			said[i] += " failed: " + strings.ReplaceAll(strings.ReplaceAll(err.Error(), w.dir, "STORE"), "database", "STORE")
		}
	}
	w.t.Logf("%s: %.200s", what, said[1])
	if said[0] != said[1] {
		w.t.Fatalf("%s: the database says\n%.3000s\nthe folder\n%.3000s", what, said[0], said[1])
	}
}

func (w *twins) draft() ctxdir.Draft {
	w.n++
	size := rapid.SampledFrom([]int{0, 10, 3000, 90_000}).Draw(w.t, "size")
	text := strings.Repeat(fmt.Sprint(w.n, " "), size/4)
	if rapid.IntRange(0, 5).Draw(w.t, "binary") == 0 {
		text = base64.StdEncoding.EncodeToString([]byte(text))
	} else if size > 10 && rapid.Bool().Draw(w.t, "dense") { // it does not get smaller
		b := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(w.n)}).Read(b)
		text = base64.RawURLEncoding.EncodeToString(b)
	}
	id := uuid.NewSHA1(w.id, []byte(fmt.Sprint(w.n)))
	w.ids = append(w.ids, id)
	return ctxdir.Draft{ID: id, Body: json.RawMessage(fmt.Sprintf(`{"role":"user","n":%d,"content":%q}`, w.n, text))}
}

func (w *twins) branch() string {
	infos, err := w.c[1].Branches(w.ctx())
	w.check(err)
	var names []string
	for _, b := range infos {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return rapid.SampledFrom(names).Draw(w.t, "branch")
}

func (w *twins) on(what string, run func(b *ctxdir.Branch) (string, error)) {
	name := w.branch()
	w.both(what+" on "+name, func(c *ctxdir.Context, _ *ctxdir.Store) (string, error) {
		b, err := c.Branch(name)
		if err != nil {
			return "", err
		}
		return run(b)
	})
}

func (w *twins) within(name string) int64 {
	b, err := w.c[1].Branch(name)
	w.check(err)
	n, err := b.Len(w.ctx())
	w.check(err)
	return rapid.Int64Range(0, n).Draw(w.t, "position")
}

// show describes everything that a context shows.
func (w *twins) show(c *ctxdir.Context, s *ctxdir.Store) (string, error) {
	var out strings.Builder
	if err := c.Refresh(w.ctx()); err != nil {
		return "", err
	}
	infos, err := c.Branches(w.ctx())
	if err != nil {
		return "", err
	}
	for _, info := range infos {
		fmt.Fprintln(&out, info.Name, info.Messages, info.Base)
		b, err := c.Branch(info.Name)
		if err != nil {
			return "", err
		}
		for m, err := range b.Messages(w.ctx(), 0, info.Messages) {
			if err != nil {
				return "", err
			}
			body, err := m.Body(w.ctx())
			fmt.Fprintln(&out, m.ID, m.Position, m.Unavailable, err, string(body))
		}
	}
	for sum, err := range s.List(w.ctx(), ctxdir.ListOptions{}) {
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, sum.ID, sum.Title, sum.Messages, sum.Problem)
	}
	trash := 0
	for _, err := range s.Trash(w.ctx()) {
		if err != nil {
			return "", err
		}
		trash++
	}
	fmt.Fprintln(&out, c.Metadata().Title, c.Active().Name(), trash, "in the trash")
	return out.String(), nil
}

func (w *twins) audit(_ *ctxdir.Context, s *ctxdir.Store) (string, error) {
	var out strings.Builder
	for f, err := range s.Check(w.ctx(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		if err != nil {
			return "", err
		}
		if f.Severity != ctxdir.SeverityInfo {
			fmt.Fprintln(&out, f.Kind, f.Severity, f.Detail)
		}
	}
	return out.String(), nil
}

func (w *twins) operations() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"append": func(*rapid.T) {
			d := w.draft()
			w.on("append", func(b *ctxdir.Branch) (string, error) { r, err := b.Append(w.ctx(), d); return fmt.Sprint(r), err })
		},
		"batch": func(*rapid.T) {
			var drafts []ctxdir.Draft
			for range rapid.IntRange(1, 60).Draw(w.t, "messages") {
				drafts = append(drafts, w.draft())
			}
			w.on("batch", func(b *ctxdir.Branch) (string, error) {
				r, err := b.AppendBatch(w.ctx(), drafts)
				return fmt.Sprint(r), err
			})
		},
		"replace": func(*rapid.T) {
			id, d := rapid.SampledFrom(append(w.ids, uuid.Nil)).Draw(w.t, "id"), w.draft()
			d.ID = id
			w.on("replace", func(b *ctxdir.Branch) (string, error) {
				return "", b.Replace(w.ctx(), id, d, ctxdir.WriteOptions{Shared: true})
			})
		},
		"fork": func(*rapid.T) {
			w.n++
			from := w.branch()
			at, name := w.within(from), fmt.Sprint("b", w.n)
			w.both("fork "+from, func(c *ctxdir.Context, _ *ctxdir.Store) (string, error) {
				b, err := c.Branch(from)
				if err == nil {
					_, err = b.Fork(w.ctx(), name, at)
				}
				return "", err
			})
		},
		"rewind": func(*rapid.T) {
			of := w.branch()
			at := w.within(of)
			w.both("rewind "+of, func(c *ctxdir.Context, _ *ctxdir.Store) (string, error) {
				b, err := c.Branch(of)
				if err == nil {
					err = b.Rewind(w.ctx(), at)
				}
				return "", err
			})
		},
		"switch": func(*rapid.T) {
			name := w.branch()
			w.both("switch "+name, func(c *ctxdir.Context, _ *ctxdir.Store) (string, error) { return "", c.Switch(w.ctx(), name) })
		},
		"remove": func(*rapid.T) {
			w.on("remove", func(b *ctxdir.Branch) (string, error) { return "", b.Remove(w.ctx()) })
		},
		"title": func(*rapid.T) {
			w.n++
			title := fmt.Sprint("title ", w.n)
			w.both("title", func(c *ctxdir.Context, _ *ctxdir.Store) (string, error) {
				return "", c.Update(w.ctx(), func(m *ctxdir.Metadata) error { m.Title = title; return nil })
			})
		},
		"seal": func(*rapid.T) {
			w.both("seal", func(c *ctxdir.Context, _ *ctxdir.Store) (string, error) { return "", c.Admin().Seal(w.ctx()) })
		},
		"archive": func(*rapid.T) {
			w.both("archive", func(_ *ctxdir.Context, s *ctxdir.Store) (string, error) {
				_, err := s.Archive(w.ctx(), ctxdir.ArchiveOptions{All: true})
				return "", err
			})
		},
		"erase": func(*rapid.T) {
			id := rapid.SampledFrom(append(w.ids, uuid.Nil)).Draw(w.t, "id")
			w.both("erase", func(_ *ctxdir.Context, s *ctxdir.Store) (string, error) {
				_, err := s.Erase(w.ctx(), w.id, []uuid.UUID{id}, ctxdir.EraseOptions{Shared: true})
				return "", err
			})
		},
		"collect": func(*rapid.T) {
			w.both("collect", func(_ *ctxdir.Context, s *ctxdir.Store) (string, error) {
				_, err := s.Collect(w.ctx(), ctxdir.CollectOptions{All: true, NoGrace: true})
				return "", err
			})
		},
		"repair": func(*rapid.T) {
			w.both("repair", func(_ *ctxdir.Context, s *ctxdir.Store) (string, error) {
				_, err := s.Repair(w.ctx(), ctxdir.RepairOptions{All: true})
				return "", err
			})
		},
		"other": func(*rapid.T) { // a context that is removed, and perhaps restored
			back := rapid.Bool().Draw(w.t, "back")
			w.both("other", func(_ *ctxdir.Context, s *ctxdir.Store) (string, error) {
				id := uuid.NewSHA1(w.id, []byte("other"))
				c, err := s.Open(w.ctx(), id)
				if errors.Is(err, ctxdir.ErrNotExist) {
					c, err = s.Create(w.ctx(), ctxdir.Metadata{ID: id, Title: "other"})
				}
				if err != nil {
					return "", err
				}
				if err := c.Close(); err != nil {
					return "", err
				}
				item, err := s.Remove(w.ctx(), id)
				if err == nil && back {
					_, err = s.Restore(w.ctx(), item.ID)
				}
				return "", err
			})
		},
		"reopen": func(*rapid.T) { w.reopen() },
		"show":   func(*rapid.T) { w.both("show", w.show) },
	}
}

func (w *twins) reopen() {
	w.close()
	w.open(false)
	for i, s := range w.stores {
		c, err := s.Open(w.ctx(), w.id)
		w.check(err)
		w.c[i] = c
	}
}

// TestLikeStore runs the same steps on a store in the database and on one in a folder.
func TestLikeStore(t *testing.T) {
	newDisk := anyBucket(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		check(t, err)
		w := &twins{t: rt, disk: newDisk(rt), dir: dir, id: uuid.New()}
		w.opts = knobs.Options(engine.WithSealBytes(rapid.SampledFrom([]int64{-1, 4000, 100_000}).Draw(rt, "seal at")))
		w.opts.RelaxedDurability = rapid.Bool().Draw(rt, "relaxed")
		w.opts.CacheSize = rapid.SampledFrom([]int64{-1, 1 << 20}).Draw(rt, "cache")
		w.opts.TextThreshold = rapid.SampledFrom([]int64{-1, 1 << 10}).Draw(rt, "threshold")
		w.open(true)
		for i, s := range w.stores {
			c, err := s.Create(w.ctx(), ctxdir.Metadata{ID: w.id})
			w.check(err)
			w.c[i] = c
		}
		rt.Repeat(w.operations())
		w.both("show", w.show)
		w.reopen()
		w.both("show", w.show)
		w.both("check", w.audit)
		w.close()
		if len(w.disk.damages) > 0 {
			rt.Fatal(w.disk.damages)
		}
	})
}
