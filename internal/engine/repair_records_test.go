package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// newRider makes a context of six messages, each with a payload that is in a journal alone: in the live one, or in one
// that is folded and not settled.
func newRider(t *testing.T, folded bool) *patient {
	t.Helper()
	ctx := context.Background()
	root := t.TempDir()
	p := &patient{t: t, outside: filepath.Join(root, "outside")}
	write(t, p.outside, []byte("outside"))
	p.store = must[*Store](t)(Init(filepath.Join(root, "store"), WithFoldBytes(-1), WithTextThreshold(100), withoutPause(), withRetain(8)))
	c := must[*Context](t)(p.store.Create(ctx, Metadata{Title: "a title"}))
	p.id, p.dir = c.ID(), filepath.Join(root, "store", c.ID().String())
	for i := range 6 {
		text := fmt.Sprintf(`{"role":"tool","content":"payload %d %s"}`, i, strings.Repeat("long ", 100))
		must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(text)}))
	}
	if folded {
		check(t, c.log.Fold(ctx, false))
	}
	p.want = p.read(c)
	for _, b := range p.want["main"] {
		p.main = append(p.main, filepath.Join(p.dir, "messages", "branch-main", b.id.String()+".json"))
	}
	check(t, c.Close())
	p.remove(filepath.Join(p.store.Path(), "blobs"))
	return p
}

// journal changes the journal that has the messages.
func (p *patient) journal(f func(b []byte) []byte) {
	p.change(filepath.Join(p.dir, "journal-1.jsonl"), f)
}

// zero overwrites bytes with zeros.
func zero(b []byte, at, n int) []byte {
	b = bytes.Clone(b)
	clear(b[at : at+n])
	return b
}

// readable counts the messages of main that can be had whole.
func (p *patient) readable() (n int) {
	p.t.Helper()
	c, err := p.store.Context(context.Background(), p.id)
	if err != nil {
		return 0
	}
	defer c.Close()
	for _, b := range p.read(c)["main"] {
		if b.text != "" {
			n++
		}
	}
	return n
}

// TestRepairWholeRecords: a repair takes every whole record of a journal, whatever surrounds it. A payload counts by
// its name; a message counts where nothing else has its position.
func TestRepairWholeRecords(t *testing.T) {
	for _, d := range []struct {
		name  string
		do    func(p *patient)
		lost  int
		files bool // the message files are needed
	}{
		{"zero bytes in a payload", func(p *patient) {
			p.journal(func(b []byte) []byte { return zero(b, bytes.Index(b, []byte("payload 1")), 16) })
		}, 1, true},
		{"zero bytes before a payload", func(p *patient) {
			p.journal(func(b []byte) []byte {
				return zero(b, bytes.LastIndex(b[:bytes.Index(b, []byte("payload 2"))], []byte(`{"chain"`))-2, 2)
			})
		}, 0, true},
		{"a payload cut in two by newlines", func(p *patient) {
			p.journal(func(b []byte) []byte {
				at := bytes.Index(b, []byte("payload 3")) + 20
				copy(b[at:], bytes.Repeat([]byte("\n"), 100))
				return b
			})
		}, 1, true},
		{"a sector of newlines where the first record begins", func(p *patient) {
			p.journal(func(b []byte) []byte {
				at := bytes.Index(b, []byte("\n{"))
				copy(b[at+1:], bytes.Repeat([]byte("\n"), 300))
				return b
			})
		}, 1, true},
		{"a bit in the beginning", func(p *patient) {
			p.journal(func(b []byte) []byte { b[200] ^= 1; return b })
		}, 0, false},
		{"a bit in the beginning, and a payload", func(p *patient) {
			p.journal(func(b []byte) []byte { b[200] ^= 1; b[bytes.Index(b, []byte("payload 2"))] ^= 1; return b })
		}, 1, false},
		{"the beginning zeroed", func(p *patient) {
			p.journal(func(b []byte) []byte { return zero(b, 0, bytes.Index(b, []byte("\n{"))+1) })
		}, 0, false},
		{"other line ends", func(p *patient) {
			p.journal(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) })
		}, 0, false},
		{"the beginning damaged and the index missing", func(p *patient) {
			p.journal(func(b []byte) []byte { b[200] ^= 1; return b })
			p.remove(filepath.Join(p.dir, "index.json"), filepath.Join(p.dir, "index"))
		}, 0, false},
		{"copied under another id", func(p *patient) {
			p.id = uuid.New()
			dir := filepath.Join(p.store.Path(), p.id.String())
			check(p.t, os.Rename(p.dir, dir))
			p.dir = dir
		}, 0, false},
		{"the store made anew", func(p *patient) {
			_, other := newStore(p.t)
			check(p.t, os.Rename(filepath.Join(other, "ctxdir.json"), filepath.Join(p.store.Path(), "ctxdir.json")))
			p.store = must[*Store](p.t)(Open(p.store.Path(), WithFoldBytes(-1), WithTextThreshold(100), withoutPause(), withRetain(8)))
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
						p.remove(filepath.Join(p.dir, "messages"))
					}
					d.do(p)
					before := p.readable()
					found, lost := p.heal(CheckOptions{})
					if lost != d.lost || before > len(p.main)-lost {
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
		item := filepath.Join(p.dir, "trash", testID(1).String())
		p.mkdir(item)
		write(t, filepath.Join(item, "item.json"), []byte(`{"ctxdir":"trash/1","kind":"damaged","name":"journal-1.jsonl",`+
			`"context":"`+p.id.String()+`","removed_at":"2026-01-02T03:04:05Z"}`))
		if damage > 0 {
			p.journal(func(b []byte) []byte { return zero(b, bytes.Index(b, []byte("payload 4")), 16) })
		}
		check(t, os.Rename(filepath.Join(p.dir, "journal-1.jsonl"), filepath.Join(item, "journal-1.jsonl")))
		p.remove(filepath.Join(p.dir, "index.json"))
		if _, lost := p.heal(CheckOptions{}); lost != damage {
			t.Errorf("%d messages are lost, wanted %d", lost, damage)
		}
	}
}
