package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// newRider makes a context of six messages, each with a payload that is in a journal alone: in the live one, or in one
// that is folded and not settled.
func newRider(t *testing.T, folded bool) *kit.Patient {
	t.Helper()
	ctx := context.Background()
	root := t.TempDir()
	p := &kit.Patient{T: t, Outside: filepath.Join(root, "outside")}
	kit.Write(t, p.Outside, []byte("outside"))
	p.Store = kit.Must[*engine.Store](t)(kit.Init(filepath.Join(root, "store"), kit.Manual(100, engine.WithRetain(8))...))
	c := kit.Must[*engine.Context](t)(p.Store.Create(ctx, engine.Metadata{Title: "a title"}))
	p.ID, p.Dir = c.ID(), filepath.Join(root, "store", c.ID().String())
	for i := range 6 {
		text := fmt.Sprintf(`{"role":"tool","content":"payload %d %s"}`, i, strings.Repeat("long ", 100))
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(text)})
	}
	if folded {
		kit.Check(t, c.Log.Fold(ctx, false))
	}
	p.Want = p.Read(c)
	for _, b := range p.Want["main"] {
		p.Main = append(p.Main, filepath.Join(p.Dir, "messages", "branch-main", b.ID.String()+".json"))
	}
	kit.Check(t, c.Close())
	p.Remove(filepath.Join(p.Store.Path(), "blobs"))
	return p
}

// zero overwrites bytes with zeros.
func zero(b []byte, at, n int) []byte {
	b = bytes.Clone(b)
	clear(b[at : at+n])
	return b
}

// TestRepairWholeRecords: a repair takes every whole record of a journal, whatever surrounds it. A payload counts by
// its name; a message counts where nothing else has its position.
func TestRepairWholeRecords(t *testing.T) {
	t.Parallel()
	for _, d := range []struct {
		name  string
		do    func(p *kit.Patient)
		lost  int
		files bool // the message files are needed
	}{
		{"zero bytes in a payload", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte { return zero(b, bytes.Index(b, []byte("payload 1")), 16) })
		}, 1, true},
		{"zero bytes before a payload", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte {
				return zero(b, bytes.LastIndex(b[:bytes.Index(b, []byte("payload 2"))], []byte(`{"chain"`))-2, 2)
			})
		}, 0, true},
		{"a payload cut in two by newlines", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte {
				at := bytes.Index(b, []byte("payload 3")) + 20
				copy(b[at:], bytes.Repeat([]byte("\n"), 100))
				return b
			})
		}, 1, true},
		{"a sector of newlines where the first record begins", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte {
				at := bytes.Index(b, []byte("\n{"))
				copy(b[at+1:], bytes.Repeat([]byte("\n"), 300))
				return b
			})
		}, 1, true},
		{"a bit in the beginning", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte { b[200] ^= 1; return b })
		}, 0, false},
		{"a bit in the beginning, and a payload", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte { b[200] ^= 1; b[bytes.Index(b, []byte("payload 2"))] ^= 1; return b })
		}, 1, false},
		{"the beginning zeroed", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte { return zero(b, 0, bytes.Index(b, []byte("\n{"))+1) })
		}, 0, false},
		{"other line ends", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) })
		}, 0, false},
		{"the beginning damaged and the index missing", func(p *kit.Patient) {
			p.Journal(func(b []byte) []byte { b[200] ^= 1; return b })
			p.Remove(filepath.Join(p.Dir, "index.json"), filepath.Join(p.Dir, "index"))
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
			p.Store = kit.Must[*engine.Store](p.T)(kit.Open(p.Store.Path(), kit.Manual(100, engine.WithRetain(8))...))
		}, 0, false},
	} {
		for _, folded := range []bool{false, true} {
			for _, files := range []bool{true, false} {
				if d.files && !files {
					continue
				}
				t.Run(fmt.Sprintf("%s, folded %v, files %v", d.name, folded, files), func(t *testing.T) {
					p := newRider(t, folded)
					if !files {
						p.Remove(filepath.Join(p.Dir, "messages"))
					}
					d.do(p)
					before := p.Readable()
					found, lost := p.Heal(engine.CheckOptions{})
					if lost != d.lost || before > len(p.Main)-lost {
						t.Errorf("%d messages are lost, wanted %d; %d could be read before", lost, d.lost, before)
					}
					if len(found) == 0 {
						t.Error("a check found nothing")
					}
				})
			}
		}
	}
}

// TestRepairPayloadFromTrash: a payload that only a journal in the trash has comes back from there.
func TestRepairPayloadFromTrash(t *testing.T) {
	for _, damage := range []int{0, 1} {
		p := newRider(t, true)
		item := filepath.Join(p.Dir, "trash", kit.TestID(1).String())
		p.Mkdir(item)
		kit.Write(t, filepath.Join(item, "item.json"), []byte(`{"ctxdir":"trash/1","kind":"damaged","name":"journal-1.jsonl",`+
			`"context":"`+p.ID.String()+`","removed_at":"2026-01-02T03:04:05Z"}`))
		if damage > 0 {
			p.Journal(func(b []byte) []byte { return zero(b, bytes.Index(b, []byte("payload 4")), 16) })
		}
		kit.Check(t, os.Rename(filepath.Join(p.Dir, "journal-1.jsonl"), filepath.Join(item, "journal-1.jsonl")))
		p.Remove(filepath.Join(p.Dir, "index.json"))
		if _, lost := p.Heal(engine.CheckOptions{}); lost != damage {
			t.Errorf("%d messages are lost, wanted %d", lost, damage)
		}
	}
}
