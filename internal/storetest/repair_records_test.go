package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// newRider makes a context of six messages, each with a payload that is in a log alone: in the open one, or in one that
// ended and is not sealed.
func newRider(t *testing.T, ended bool) *kit.Patient {
	t.Helper()
	ctx := context.Background()
	root := t.TempDir()
	p := &kit.Patient{T: t, Outside: filepath.Join(root, "outside")}
	kit.Write(t, p.Outside, []byte("outside"))
	p.Store = kit.Must[*engine.Store](t)(kit.Init(filepath.Join(root, "store"), kit.Manual(100)...))
	c := kit.Must[*engine.Context](t)(p.Store.Create(ctx, engine.Metadata{Title: "a title"}))
	p.ID, p.Dir = c.ID(), filepath.Join(root, "store", c.ID().String())
	for i := range 6 {
		text := fmt.Sprintf(`{"role":"tool","content":"payload %d %s"}`, i, strings.Repeat("long ", 100))
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(text)})
	}
	if ended {
		kit.Check(t, c.Exclusively(ctx, c.Index.Rotate))
	}
	p.Want = p.Read(c)
	for _, b := range p.Want["main"] {
		p.Main = append(p.Main, filepath.Join(p.Dir, "messages", "branch-main", b.ID.String()+".json"))
	}
	kit.Check(t, c.Close())
	p.Remove(filepath.Join(p.Store.Path(), "blobs"))
	return p
}

// changeLog changes the log that has the messages of a patient.
func changeLog(p *kit.Patient, f func(b []byte) []byte) {
	p.T.Helper()
	for _, path := range p.Glob("log-*.jsonl") {
		if b := kit.Must[[]byte](p.T)(os.ReadFile(path)); bytes.Contains(b, []byte(`"kind":"append"`)) {
			kit.Write(p.T, path, f(b))
		}
	}
}

// zero overwrites bytes with zeros.
func zero(b []byte, at, n int) []byte {
	b = bytes.Clone(b)
	clear(b[at : at+n])
	return b
}

// TestRepairWholeRecords: a repair takes every whole record of a log, whatever surrounds it.
func TestRepairWholeRecords(t *testing.T) {
	t.Parallel()
	for _, d := range []struct {
		name  string
		do    func(p *kit.Patient)
		lost  int
		files bool // the message files are needed
	}{
		{"zero bytes in a payload", func(p *kit.Patient) {
			changeLog(p, func(b []byte) []byte { return zero(b, bytes.Index(b, []byte("payload 1")), 16) })
		}, 1, true},
		{"zero bytes before a payload", func(p *kit.Patient) {
			changeLog(p, func(b []byte) []byte {
				return zero(b, bytes.LastIndex(b[:bytes.Index(b, []byte("payload 2"))], []byte(`{"chain"`))-2, 2)
			})
		}, 0, true},
		{"a payload cut in two by newlines", func(p *kit.Patient) {
			changeLog(p, func(b []byte) []byte {
				at := bytes.Index(b, []byte("payload 3")) + 20
				copy(b[at:], bytes.Repeat([]byte("\n"), 100))
				return b
			})
		}, 1, true},
		{"a sector of newlines where the first record begins", func(p *kit.Patient) {
			changeLog(p, func(b []byte) []byte {
				at := bytes.Index(b, []byte("\n{"))
				copy(b[at+1:], bytes.Repeat([]byte("\n"), 300)) // of the metadata
				return b
			})
		}, 0, true},
		{"a bit in the beginning", func(p *kit.Patient) {
			changeLog(p, func(b []byte) []byte { b[200] ^= 1; return b })
		}, 0, false},
		{"a bit in the beginning, and a payload", func(p *kit.Patient) {
			changeLog(p, func(b []byte) []byte { b[200] ^= 1; b[bytes.Index(b, []byte("payload 2"))] ^= 1; return b })
		}, 1, false},
		{"the beginning zeroed", func(p *kit.Patient) {
			changeLog(p, func(b []byte) []byte { return zero(b, 0, bytes.Index(b, []byte("\n{"))+1) })
		}, 0, false},
		{"copied under another id", func(p *kit.Patient) {
			p.ID = uuid.New()
			dir := filepath.Join(p.Store.Path(), p.ID.String())
			kit.Check(p.T, os.Rename(p.Dir, dir))
			p.Dir = dir
		}, 0, false},
		{"the store made anew", func(p *kit.Patient) {
			_, other := kit.NewStore(p.T)
			kit.Check(p.T, os.Rename(filepath.Join(other, "ctxdir.json"), filepath.Join(p.Store.Path(), "ctxdir.json")))
			p.Store = kit.Must[*engine.Store](p.T)(kit.Open(p.Store.Path(), kit.Manual(100)...))
		}, 0, false},
	} {
		for _, ended := range []bool{false, true} {
			for _, files := range []bool{true, false} {
				if d.files && !files {
					continue
				}
				t.Run(fmt.Sprintf("%s, ended %v, files %v", d.name, ended, files), func(t *testing.T) {
					p := newRider(t, ended)
					if !files {
						p.Remove(filepath.Join(p.Dir, "messages"))
					}
					d.do(p)
					found, lost := p.Heal(checking.Options{})
					if lost != d.lost {
						t.Errorf("%d messages are lost, wanted %d: %+v", lost, d.lost, found)
					}
					if len(found) == 0 && d.name != "the store made anew" {
						t.Error("a check found nothing")
					}
				})
			}
		}
	}
}
