package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// archivedDamage is one way to damage an archived context.
type archivedDamage struct {
	name string
	// do returns the messages that are gone.
	do   func(p *patient) []uuid.UUID
	kind integrity.Kind // that check tells, "" for nothing it must tell
	// nameless says that nothing is left that tells the ids of all lost messages.
	nameless bool
	payloads bool // they are gone, not the messages
	but      string
}

var archivedDamages = []archivedDamage{
	{name: "message frame damaged", kind: integrity.KindDamaged, do: func(p *patient) []uuid.UUID {
		part := p.part("messages", 1)
		p.flip(part)
		return part.ids
	}},
	{name: "first message frame damaged", kind: integrity.KindDamaged, do: func(p *patient) []uuid.UUID {
		part := p.part("messages", 0)
		p.flip(part)
		return part.ids
	}},
	{name: "message frame full of zero bytes", kind: integrity.KindDamaged, do: func(p *patient) []uuid.UUID {
		part := p.part("messages", 1)
		p.change(p.packs()[0], func(b []byte) []byte { clear(b[part.from:part.to]); return b })
		return part.ids
	}},
	{name: "rows frame damaged", kind: integrity.KindPack, do: func(p *patient) []uuid.UUID { p.flip(p.part("rows", 1)); return nil }},
	{name: "message frame and its rows damaged", nameless: true, do: func(p *patient) []uuid.UUID {
		part := p.part("messages", 1)
		p.flip(part, p.part("rows", 1))
		return part.ids
	}},
	{
		name: "page of the directory damaged",
		kind: integrity.KindPack,
		do:   func(p *patient) []uuid.UUID { p.flip(p.part("directory", 0)); return nil },
	},
	{name: "page of ids damaged", kind: integrity.KindPack, do: func(p *patient) []uuid.UUID { p.flip(p.part("ids", 0)); return nil }},
	{
		name: "page of payloads damaged",
		kind: integrity.KindPack,
		do:   func(p *patient) []uuid.UUID { p.flip(p.part("payload table", 0)); return nil },
	},
	{name: "footer damaged", kind: integrity.KindPack, do: func(p *patient) []uuid.UUID { p.flip(p.part("footer", 0)); return nil }},
	{name: "head damaged", kind: integrity.KindPack, do: func(p *patient) []uuid.UUID {
		p.change(p.packs()[0], func(b []byte) []byte { b[15] ^= 0x40; return b })
		return nil
	}},
	{name: "directory and a message frame damaged", kind: integrity.KindDamaged, do: func(p *patient) []uuid.UUID {
		part := p.part("messages", 1)
		p.flip(part, p.part("directory", 0))
		return part.ids
	}},
	{name: "pack without its tables", kind: integrity.KindPack, do: func(p *patient) []uuid.UUID {
		at := p.part("directory", 0).from - 16
		p.change(p.packs()[0], func(b []byte) []byte { return b[:at] })
		return nil
	}},
	{name: "pack cut short", nameless: true, do: func(p *patient) []uuid.UUID {
		part := p.part("messages", 1)
		lost := p.inPack()
		lost = lost[slices.Index(lost, part.ids[0]):]
		p.change(p.packs()[0], func(b []byte) []byte { return b[:(part.from+part.to)/2] })
		return lost
	}},
	{name: "pack empty", nameless: true, do: func(p *patient) []uuid.UUID {
		lost := p.inPack()
		write(p.t, p.packs()[0], nil)
		return lost
	}},
	{name: "pack NUL-filled", nameless: true, do: func(p *patient) []uuid.UUID {
		lost := p.inPack()
		p.change(p.packs()[0], func(b []byte) []byte { return make([]byte, len(b)) })
		return lost
	}},
	{name: "pack missing", nameless: true, do: func(p *patient) []uuid.UUID {
		lost := p.inPack()
		p.remove(p.packs()[0])
		return lost
	}},
	{name: "pack replaced by a folder", nameless: true, do: func(p *patient) []uuid.UUID {
		lost, path := p.inPack(), p.packs()[0]
		p.remove(path)
		p.mkdir(path)
		return lost
	}},
	{name: "pack replaced by a link that leads out", nameless: true, do: func(p *patient) []uuid.UUID {
		lost, path := p.inPack(), p.packs()[0]
		p.remove(path)
		p.link(p.outside, path)
		return lost
	}},
	{name: "something in front of a pack", kind: integrity.KindPack, do: func(p *patient) []uuid.UUID {
		p.change(p.packs()[0], func(b []byte) []byte { return append([]byte("\ufeffhello\n"), b...) })
		return nil
	}},
	{name: "a pack compressed anew", kind: integrity.KindPack, do: func(p *patient) []uuid.UUID {
		p.change(p.packs()[0], func(b []byte) []byte { return compressedAnew(p.t, b) })
		return nil
	}},
	{name: "archive missing", nameless: true, but: "two packs", do: func(p *patient) []uuid.UUID {
		lost := p.inPack()
		p.remove(filepath.Join(p.dir, "archive"))
		return lost
	}},
	{name: "archive is a file", nameless: true, but: "two packs", do: func(p *patient) []uuid.UUID {
		lost, path := p.inPack(), filepath.Join(p.dir, "archive")
		p.remove(path)
		write(p.t, path, []byte("no folder"))
		return lost
	}},
	{name: "archive is a link that leads out", nameless: true, but: "two packs", do: func(p *patient) []uuid.UUID {
		lost, path := p.inPack(), filepath.Join(p.dir, "archive")
		p.remove(path)
		p.link(filepath.Dir(p.outside), path)
		return lost
	}},

	{
		name: "index.json missing",
		kind: integrity.KindIndex,
		do:   func(p *patient) []uuid.UUID { p.remove(p.glob("index.json")...); return nil },
	},
	{name: "index.json truncated", kind: integrity.KindIndex, do: func(p *patient) []uuid.UUID {
		p.change(p.glob("index.json")[0], func(b []byte) []byte { return b[:len(b)/2] })
		return nil
	}},
	{name: "index.json without packs", kind: integrity.KindIndex, do: func(p *patient) []uuid.UUID {
		p.resum(regexp.MustCompile(`"packs"`), `"pucks"`)
		return nil
	}},
	{name: "index.json with a pack that is not there", kind: integrity.KindIndex, do: func(p *patient) []uuid.UUID {
		p.resum(regexp.MustCompile(`"packs": *\[\s*"[^"]*"`), `"packs": ["`+uuid.NewString()+`"`)
		return nil
	}},
	{name: "row files missing", do: func(p *patient) []uuid.UUID { p.removeRows(); return nil }},
	{name: "row files damaged", do: func(p *patient) []uuid.UUID {
		rows, _ := filepath.Glob(filepath.Join(p.dir, "index", "*.rows"))
		for _, path := range rows {
			p.change(path, func(b []byte) []byte {
				if len(b) == 0 {
					return b
				}
				return flipped(b)
			})
		}
		return nil
	}},
	{name: "index.json and row files missing", kind: integrity.KindIndex, do: func(p *patient) []uuid.UUID {
		p.remove(p.glob("index.json")...)
		p.removeRows()
		return nil
	}},
	{
		name: "journals missing",
		kind: integrity.KindIndex,
		do:   func(p *patient) []uuid.UUID { p.remove(p.glob("journal-*.jsonl")...); return nil },
	},
	{name: "journals and index.json missing", kind: integrity.KindIndex, do: func(p *patient) []uuid.UUID {
		p.remove(slices.Concat(p.glob("journal-*.jsonl"), p.glob("index.json"))...)
		return nil
	}},
	{name: "journals, index.json and row files missing", kind: integrity.KindIndex, do: func(p *patient) []uuid.UUID {
		p.remove(slices.Concat(p.glob("journal-*.jsonl"), p.glob("index.json"))...)
		p.removeRows()
		return nil
	}},
	{
		name:     "index.json missing, a message frame and its rows damaged",
		kind:     integrity.KindIndex,
		nameless: true,
		do: func(p *patient) []uuid.UUID {
			part := p.part("messages", 1)
			p.flip(part, p.part("rows", 1))
			p.remove(p.glob("index.json")...)
			return part.ids
		},
	},
	{
		name: "metadata.json missing",
		kind: integrity.KindMetadata,
		do:   func(p *patient) []uuid.UUID { p.remove(p.glob("metadata.json")...); return nil },
	},
	{name: "metadata.json with another parent", kind: integrity.KindStructure, do: func(p *patient) []uuid.UUID {
		p.metadata(func(m map[string]any) {
			lines := m["lines"].([]any)
			lines[1].(map[string]any)["parent"] = lines[2].(map[string]any)["id"]
		})
		return nil
	}},
	{name: "metadata.json with a base beyond its parent", kind: integrity.KindStructure, do: func(p *patient) []uuid.UUID {
		p.change(p.glob("metadata.json")[0], func(b []byte) []byte { return bytes.Replace(b, []byte(`"base": 20`), []byte(`"base": 500`), 1) })
		return nil
	}},
	{name: "metadata.json and journals missing", kind: integrity.KindMetadata, do: func(p *patient) []uuid.UUID {
		p.remove(slices.Concat(p.glob("metadata.json"), p.glob("journal-*.jsonl"))...)
		delete(p.want, "empty")
		return nil
	}},
	{name: "metadata.json, journals, index.json and row files missing", kind: integrity.KindMetadata, do: func(p *patient) []uuid.UUID {
		p.remove(slices.Concat(p.glob("metadata.json"), p.glob("journal-*.jsonl"), p.glob("index.json"))...)
		p.removeRows()
		delete(p.want, "empty")
		return nil
	}},

	{name: "garbage in the place of a message", kind: integrity.KindDamaged, do: func(p *patient) []uuid.UUID {
		p.mkdir(filepath.Dir(p.main[3]))
		write(p.t, p.main[3], []byte("garbage"))
		return nil
	}},
	{
		name: "a folder in the place of a message",
		kind: integrity.KindDamaged,
		do:   func(p *patient) []uuid.UUID { p.mkdir(p.main[3]); return nil },
	},
	{name: "a link in the place of a message", kind: integrity.KindDamaged, do: func(p *patient) []uuid.UUID {
		p.mkdir(filepath.Dir(p.main[3]))
		p.link(p.outside, p.main[3])
		return nil
	}},
	{name: "a message taken out and edited by hand", kind: integrity.KindEdited, do: func(p *patient) []uuid.UUID {
		p.takeOut(p.main[4], func(b []byte) []byte {
			return bytes.Replace(b, []byte("message 4 of main"), []byte("edited by hand"), 1)
		})
		p.say(4, "message 4 of main", "edited by hand")
		return nil
	}},
	{name: "a message of a damaged frame taken out", kind: integrity.KindDamaged, do: func(p *patient) []uuid.UUID {
		part := p.part("messages", 0)
		p.takeOut(p.main[4], func(b []byte) []byte { return b })
		p.flip(part)
		return slices.DeleteFunc(part.ids, func(id uuid.UUID) bool { return id == p.want["main"][4].id })
	}},
	{name: "a payload group damaged, blobs there", kind: integrity.KindPack, do: func(p *patient) []uuid.UUID {
		p.flipBefore(p.part("payloads", 0))
		return nil
	}},
	{name: "a payload's name damaged, blobs missing", kind: integrity.KindPack, payloads: true, do: func(p *patient) []uuid.UUID {
		part := p.part("payloads", 0)
		lost := p.referring(part.payloads[1:2])
		p.change(p.packs()[0], func(b []byte) []byte { b[part.from+20+36+7] ^= 1; return b })
		p.remove(filepath.Join(p.store.Path(), "blobs"))
		return lost
	}},
	{name: "a payload group damaged, blobs missing", kind: integrity.KindPayload, payloads: true, do: func(p *patient) []uuid.UUID {
		part := p.part("payloads", 0)
		lost := p.referring(part.payloads)
		p.flipBefore(part)
		p.remove(filepath.Join(p.store.Path(), "blobs"))
		return lost
	}},
	{name: "blobs missing", do: func(p *patient) []uuid.UUID {
		p.remove(filepath.Join(p.store.Path(), "blobs"))
		return nil
	}},
}

// TestDamageArchived is TestDamage for archived messages. What is damaged is unavailable before and after a repair,
// under its id where that is known, and nothing else is.
func TestDamageArchived(t *testing.T) {
	for _, kind := range archivedKinds {
		_ = newArchived(t, kind)
		for _, d := range archivedDamages {
			if kind == d.but {
				continue
			}
			t.Run(d.name+", "+kind, func(t *testing.T) {
				t.Parallel()
				p := newArchived(t, kind)
				wants := map[uuid.UUID]bool{}
				for _, id := range d.do(p) {
					wants[id] = true
				}
				if kind == "half" {
					delete(wants, p.want["main"][27].id) // its newer version is in a file
				}
				p.damaged(&d, wants)
			})
		}
	}
}

// damaged compares what is gone with what should be, before a repair and after.
func (p *patient) damaged(d *archivedDamage, wants map[uuid.UUID]bool) {
	p.t.Helper()
	compare := func(when string) {
		p.t.Helper()
		gone, nameless := p.ill()
		if nameless > 0 && !d.nameless {
			p.t.Errorf("%s: %d messages without an id", when, nameless)
		}
		for id, err := range gone {
			var payload *UnavailableError
			if !wants[id] {
				p.t.Errorf("%s: %s is gone: %v", when, id, err)
			} else if d.payloads != errors.As(err, &payload) || !d.payloads && !errors.Is(err, ErrDamaged) {
				p.t.Errorf("%s: %s: %v", when, id, err)
			}
		}
		for id := range wants {
			if gone[id] == nil {
				p.t.Errorf("%s: %s is there", when, id)
			}
		}
	}
	if !slices.Contains([]integrity.Kind{integrity.KindMetadata, integrity.KindStructure}, d.kind) {
		compare("before the repair")
	}
	packs, err := filepath.Glob(filepath.Join(p.dir, "archive", "*.zst"))
	check(p.t, err)
	var damaged []byte
	if info, err := os.Lstat(slices.Concat(packs, []string{p.dir})[0]); err == nil && info.Mode().IsRegular() {
		damaged = must[[]byte](p.t)(os.ReadFile(packs[0]))
	}
	p.nameless = d.nameless
	found, _ := p.heal(CheckOptions{})
	if d.kind != "" && !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == d.kind }) {
		p.t.Errorf("check did not tell of %s: %+v", d.kind, found)
	}
	if len(wants) > 0 && len(found) == 0 {
		p.t.Error("check told of nothing")
	}
	after := p.check(true)
	for _, f := range found {
		same := func(g Finding) bool { return g.Kind == f.Kind && g.Path == f.Path && g.ID == f.ID }
		if !f.Repairable && f.Severity == SeverityError && !slices.ContainsFunc(after, same) {
			p.t.Errorf("it was not to be repaired, and is gone: %+v", f)
		}
	}
	now, err := filepath.Glob(filepath.Join(p.dir, "archive", "*.zst"))
	if check(p.t, err); damaged != nil && !slices.Contains(now, packs[0]) && !p.inTrash(damaged) {
		p.t.Error("the pack is gone, and no copy of it is in the trash")
	}
	for id := range wants { // what was appended since is not looked at
		if d.payloads {
			break
		}
		if !slices.ContainsFunc(after, func(f Finding) bool { return f.Kind == integrity.KindLost && (f.ID == id || f.ID == uuid.Nil) }) {
			p.t.Errorf("check does not tell that %s is lost", id)
		}
	}
	p.want["main"] = append(p.want["main"], body{}) // appended after the repair
	ctx := context.Background()
	c := must[*Context](p.t)(p.store.Context(ctx, p.id))
	last := must[[]*Message](p.t)(must[*Branch](p.t)(c.Branch("main")).Last(ctx, 1))
	p.want["main"][len(p.want["main"])-1] = body{last[0].ID, string(must[json.RawMessage](p.t)(last[0].Body(ctx)))}
	check(p.t, c.Close())
	compare("after the repair")
}

// compressedAnew is what "zstd -dc | zstd" makes of a pack.
func compressedAnew(t *testing.T, pack []byte) []byte {
	t.Helper()
	r := must[*zstd.Decoder](t)(zstd.NewReader(bytes.NewReader(pack)))
	defer r.Close()
	var b bytes.Buffer
	w := must[*zstd.Encoder](t)(zstd.NewWriter(&b))
	_ = must[int64](t)(io.Copy(w, r))
	check(t, w.Close())
	return b.Bytes()
}
