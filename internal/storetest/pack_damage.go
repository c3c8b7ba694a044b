package storetest

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
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// PackDamage is one way to damage an archived context.
type PackDamage struct {
	Name string
	// Do makes the damage and returns the lost messages.
	Do   func(p *Patient) []uuid.UUID
	kind integrity.Kind // of a finding that a check must report; empty if it need not report any
	// nameless says that the ids of some lost messages are lost too.
	nameless bool
	payloads bool // they are gone, not the messages
	But      string
}

// PackDamages are the ways to damage an archived context.
var PackDamages = []PackDamage{
	{Name: "message frame damaged", kind: integrity.KindDamaged, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("messages", 1)
		p.Flip(part)
		return part.IDs
	}},
	{Name: "first message frame damaged", kind: integrity.KindDamaged, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("messages", 0)
		p.Flip(part)
		return part.IDs
	}},
	{Name: "message frame full of zero bytes", kind: integrity.KindDamaged, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("messages", 1)
		p.Change(p.Packs()[0], func(b []byte) []byte { clear(b[part.From:part.to]); return b })
		return part.IDs
	}},
	{Name: "rows frame damaged", kind: integrity.KindPack, Do: func(p *Patient) []uuid.UUID { p.Flip(p.Part("rows", 1)); return nil }},
	{Name: "message frame and its rows damaged", nameless: true, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("messages", 1)
		p.Flip(part, p.Part("rows", 1))
		return part.IDs
	}},
	{
		Name: "page of the directory damaged",
		kind: integrity.KindPack,
		Do:   func(p *Patient) []uuid.UUID { p.Flip(p.Part("directory", 0)); return nil },
	},
	{Name: "page of ids damaged", kind: integrity.KindPack, Do: func(p *Patient) []uuid.UUID { p.Flip(p.Part("ids", 0)); return nil }},
	{
		Name: "page of payloads damaged",
		kind: integrity.KindPack,
		Do:   func(p *Patient) []uuid.UUID { p.Flip(p.Part("payload table", 0)); return nil },
	},
	{Name: "footer damaged", kind: integrity.KindPack, Do: func(p *Patient) []uuid.UUID { p.Flip(p.Part("footer", 0)); return nil }},
	{Name: "head damaged", kind: integrity.KindPack, Do: func(p *Patient) []uuid.UUID {
		p.Change(p.Packs()[0], func(b []byte) []byte { b[15] ^= 0x40; return b })
		return nil
	}},
	{Name: "directory and a message frame damaged", kind: integrity.KindDamaged, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("messages", 1)
		p.Flip(part, p.Part("directory", 0))
		return part.IDs
	}},
	{Name: "pack without its tables", kind: integrity.KindPack, Do: func(p *Patient) []uuid.UUID {
		at := p.Part("directory", 0).From - 16
		p.Change(p.Packs()[0], func(b []byte) []byte { return b[:at] })
		return nil
	}},
	{Name: "pack cut short", nameless: true, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("messages", 1)
		lost := p.packIDs()
		lost = lost[slices.Index(lost, part.IDs[0]):]
		p.Change(p.Packs()[0], func(b []byte) []byte { return b[:(part.From+part.to)/2] })
		return lost
	}},
	{Name: "pack empty", nameless: true, Do: func(p *Patient) []uuid.UUID {
		lost := p.packIDs()
		Write(p.T, p.Packs()[0], nil)
		return lost
	}},
	{Name: "pack NUL-filled", nameless: true, Do: func(p *Patient) []uuid.UUID {
		lost := p.packIDs()
		p.Change(p.Packs()[0], func(b []byte) []byte { return make([]byte, len(b)) })
		return lost
	}},
	{Name: "pack missing", nameless: true, Do: func(p *Patient) []uuid.UUID {
		lost := p.packIDs()
		p.Remove(p.Packs()[0])
		return lost
	}},
	{Name: "pack replaced by a folder", nameless: true, Do: func(p *Patient) []uuid.UUID {
		lost, path := p.packIDs(), p.Packs()[0]
		p.Remove(path)
		p.Mkdir(path)
		return lost
	}},
	{Name: "pack replaced by a link out of the store", nameless: true, Do: func(p *Patient) []uuid.UUID {
		lost, path := p.packIDs(), p.Packs()[0]
		p.Remove(path)
		p.Link(p.Outside, path)
		return lost
	}},
	{Name: "something in front of a pack", kind: integrity.KindPack, Do: func(p *Patient) []uuid.UUID {
		p.Change(p.Packs()[0], func(b []byte) []byte { return append([]byte("\ufeffhello\n"), b...) })
		return nil
	}},
	{Name: "a pack compressed anew", kind: integrity.KindPack, Do: func(p *Patient) []uuid.UUID {
		p.Change(p.Packs()[0], func(b []byte) []byte { return recompress(p.T, b) })
		return nil
	}},
	{Name: "archive missing", nameless: true, But: "two packs", Do: func(p *Patient) []uuid.UUID {
		lost := p.packIDs()
		p.Remove(filepath.Join(p.Dir, "archive"))
		return lost
	}},
	{Name: "archive is a file", nameless: true, But: "two packs", Do: func(p *Patient) []uuid.UUID {
		lost, path := p.packIDs(), filepath.Join(p.Dir, "archive")
		p.Remove(path)
		Write(p.T, path, []byte("no folder"))
		return lost
	}},
	{Name: "archive is a link out of the store", nameless: true, But: "two packs", Do: func(p *Patient) []uuid.UUID {
		lost, path := p.packIDs(), filepath.Join(p.Dir, "archive")
		p.Remove(path)
		p.Link(filepath.Dir(p.Outside), path)
		return lost
	}},

	{
		Name: "index.json missing",
		kind: integrity.KindIndex,
		Do:   func(p *Patient) []uuid.UUID { p.Remove(p.Glob("index.json")...); return nil },
	},
	{Name: "index.json truncated", kind: integrity.KindIndex, Do: func(p *Patient) []uuid.UUID {
		p.Change(p.Glob("index.json")[0], func(b []byte) []byte { return b[:len(b)/2] })
		return nil
	}},
	{Name: "index.json without packs", kind: integrity.KindIndex, Do: func(p *Patient) []uuid.UUID {
		p.EditIndex(regexp.MustCompile(`"packs"`), `"pucks"`)
		return nil
	}},
	{Name: "index.json with a pack that is not there", kind: integrity.KindIndex, Do: func(p *Patient) []uuid.UUID {
		p.EditIndex(regexp.MustCompile(`"packs": *\[\s*"[^"]*"`), `"packs": ["`+uuid.NewString()+`"`)
		return nil
	}},
	{Name: "row files missing", Do: func(p *Patient) []uuid.UUID { p.removeRows(); return nil }},
	{Name: "row files damaged", Do: func(p *Patient) []uuid.UUID {
		rows, _ := filepath.Glob(filepath.Join(p.Dir, "index", "*.rows"))
		for _, path := range rows {
			p.Change(path, func(b []byte) []byte {
				if len(b) == 0 {
					return b
				}
				return FlipBit(b)
			})
		}
		return nil
	}},
	{Name: "index.json and row files missing", kind: integrity.KindIndex, Do: func(p *Patient) []uuid.UUID {
		p.Remove(p.Glob("index.json")...)
		p.removeRows()
		return nil
	}},
	{
		Name: "journals missing",
		kind: integrity.KindIndex,
		Do:   func(p *Patient) []uuid.UUID { p.Remove(p.Glob("journal-*.jsonl")...); return nil },
	},
	{Name: "journals and index.json missing", kind: integrity.KindIndex, Do: func(p *Patient) []uuid.UUID {
		p.Remove(slices.Concat(p.Glob("journal-*.jsonl"), p.Glob("index.json"))...)
		return nil
	}},
	{Name: "journals, index.json and row files missing", kind: integrity.KindIndex, Do: func(p *Patient) []uuid.UUID {
		p.Remove(slices.Concat(p.Glob("journal-*.jsonl"), p.Glob("index.json"))...)
		p.removeRows()
		return nil
	}},
	{
		Name:     "index.json missing, a message frame and its rows damaged",
		kind:     integrity.KindIndex,
		nameless: true,
		Do: func(p *Patient) []uuid.UUID {
			part := p.Part("messages", 1)
			p.Flip(part, p.Part("rows", 1))
			p.Remove(p.Glob("index.json")...)
			return part.IDs
		},
	},
	{
		Name: "metadata.json missing",
		kind: integrity.KindMetadata,
		Do:   func(p *Patient) []uuid.UUID { p.Remove(p.Glob("metadata.json")...); return nil },
	},
	{Name: "metadata.json with another parent", kind: integrity.KindMetadata, Do: func(p *Patient) []uuid.UUID {
		p.Metadata(func(m map[string]any) {
			lines := m["lines"].([]any)
			lines[1].(map[string]any)["parent"] = lines[2].(map[string]any)["id"]
		})
		return nil
	}},
	{Name: "metadata.json with a base beyond its parent", kind: integrity.KindMetadata, Do: func(p *Patient) []uuid.UUID {
		p.Change(p.Glob("metadata.json")[0], func(b []byte) []byte { return bytes.Replace(b, []byte(`"base": 20`), []byte(`"base": 500`), 1) })
		return nil
	}},
	{Name: "metadata.json and journals missing", kind: integrity.KindMetadata, Do: func(p *Patient) []uuid.UUID {
		p.Remove(slices.Concat(p.Glob("metadata.json"), p.Glob("journal-*.jsonl"))...)
		delete(p.Want, "empty")
		return nil
	}},
	{Name: "metadata.json, journals, index.json and row files missing", kind: integrity.KindMetadata, Do: func(p *Patient) []uuid.UUID {
		p.Remove(slices.Concat(p.Glob("metadata.json"), p.Glob("journal-*.jsonl"), p.Glob("index.json"))...)
		p.removeRows()
		delete(p.Want, "empty")
		return nil
	}},

	{Name: "garbage in the place of a message", kind: integrity.KindDamaged, Do: func(p *Patient) []uuid.UUID {
		p.Mkdir(filepath.Dir(p.Main[3]))
		Write(p.T, p.Main[3], []byte("garbage"))
		return nil
	}},
	{
		Name: "a folder in the place of a message",
		kind: integrity.KindDamaged,
		Do:   func(p *Patient) []uuid.UUID { p.Mkdir(p.Main[3]); return nil },
	},
	{Name: "a link in the place of a message", kind: integrity.KindDamaged, Do: func(p *Patient) []uuid.UUID {
		p.Mkdir(filepath.Dir(p.Main[3]))
		p.Link(p.Outside, p.Main[3])
		return nil
	}},
	{Name: "a message taken out and edited by hand", kind: integrity.KindEdited, Do: func(p *Patient) []uuid.UUID {
		p.takeOut(p.Main[4], func(b []byte) []byte {
			return bytes.Replace(b, []byte("message 4 of main"), []byte("edited by hand"), 1)
		})
		p.setWant(4, "message 4 of main", "edited by hand")
		return nil
	}},
	{Name: "a message of a damaged frame taken out", kind: integrity.KindDamaged, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("messages", 0)
		p.takeOut(p.Main[4], func(b []byte) []byte { return b })
		p.Flip(part)
		return slices.DeleteFunc(part.IDs, func(id uuid.UUID) bool { return id == p.Want["main"][4].ID })
	}},
	{Name: "a payload group damaged, blobs there", kind: integrity.KindPack, Do: func(p *Patient) []uuid.UUID {
		p.FlipBefore(p.Part("payloads", 0))
		return nil
	}},
	{Name: "a payload's name damaged, blobs missing", kind: integrity.KindPack, payloads: true, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("payloads", 0)
		lost := p.messagesWith(part.payloads[1:2])
		p.Change(p.Packs()[0], func(b []byte) []byte { b[part.From+20+36+7] ^= 1; return b })
		p.Remove(filepath.Join(p.Store.Path(), "blobs"))
		return lost
	}},
	{Name: "a payload group damaged, blobs missing", kind: integrity.KindPayload, payloads: true, Do: func(p *Patient) []uuid.UUID {
		part := p.Part("payloads", 0)
		lost := p.messagesWith(part.payloads)
		p.FlipBefore(part)
		p.Remove(filepath.Join(p.Store.Path(), "blobs"))
		return lost
	}},
	{Name: "blobs missing", Do: func(p *Patient) []uuid.UUID {
		p.Remove(filepath.Join(p.Store.Path(), "blobs"))
		return nil
	}},
}

// CompareLosses compares what is gone with what should be, before a repair and after.
func (p *Patient) CompareLosses(d *PackDamage, wants map[uuid.UUID]bool) {
	p.T.Helper()
	compare := func(when string) {
		p.T.Helper()
		gone, nameless := p.Unavailable()
		if nameless > 0 && !d.nameless {
			p.T.Errorf("%s: %d messages without an id", when, nameless)
		}
		for id, err := range gone {
			var payload *engine.UnavailableError
			if !wants[id] {
				p.T.Errorf("%s: %s is gone: %v", when, id, err)
			} else if d.payloads != errors.As(err, &payload) || !d.payloads && !errors.Is(err, engine.ErrDamaged) {
				p.T.Errorf("%s: %s: %v", when, id, err)
			}
		}
		for id := range wants {
			if gone[id] == nil {
				p.T.Errorf("%s: %s is there", when, id)
			}
		}
	}
	if !slices.Contains([]integrity.Kind{integrity.KindMetadata, integrity.KindStructure}, d.kind) {
		compare("before the repair")
	}
	packs, err := filepath.Glob(filepath.Join(p.Dir, "archive", "*.zst"))
	Check(p.T, err)
	var damaged []byte
	if info, err := os.Lstat(slices.Concat(packs, []string{p.Dir})[0]); err == nil && info.Mode().IsRegular() {
		damaged = Must[[]byte](p.T)(os.ReadFile(packs[0]))
	}
	p.nameless = d.nameless
	found, _ := p.Heal(engine.CheckOptions{})
	if d.kind != "" && !slices.ContainsFunc(found, func(f engine.Finding) bool { return f.Kind == d.kind }) {
		p.T.Errorf("check did not tell of %s: %+v", d.kind, found)
	}
	if len(wants) > 0 && len(found) == 0 {
		p.T.Error("check told of nothing")
	}
	after := p.Check(true)
	for _, f := range found {
		same := func(g engine.Finding) bool { return g.Kind == f.Kind && g.Path == f.Path && g.ID == f.ID }
		if !f.Repairable && f.Severity == engine.SeverityError && !slices.ContainsFunc(after, same) {
			p.T.Errorf("it was not to be repaired, and is gone: %+v", f)
		}
	}
	now, err := filepath.Glob(filepath.Join(p.Dir, "archive", "*.zst"))
	if Check(p.T, err); damaged != nil && !slices.Contains(now, packs[0]) && !p.InTrash(damaged) {
		p.T.Error("the pack is gone, and no copy of it is in the trash")
	}
	for id := range wants { // what was appended since is not looked at
		if d.payloads {
			break
		}
		if !slices.ContainsFunc(after, func(f engine.Finding) bool { return f.Kind == integrity.KindLost && (f.ID == id || f.ID == uuid.Nil) }) {
			p.T.Errorf("check does not tell that %s is lost", id)
		}
	}
	p.Want["main"] = append(p.Want["main"], Body{}) // appended after the repair
	ctx := context.Background()
	c := Must[*engine.Context](p.T)(p.Store.Context(ctx, p.ID))
	last := Must[[]*engine.Message](p.T)(Must[*engine.Branch](p.T)(c.Branch("main")).Last(ctx, 1))
	p.Want["main"][len(p.Want["main"])-1] = Body{last[0].ID, string(Must[json.RawMessage](p.T)(last[0].Body(ctx)))}
	Check(p.T, c.Close())
	compare("after the repair")
}

// recompress is what "zstd -dc | zstd" makes of a pack.
func recompress(t *testing.T, pack []byte) []byte {
	t.Helper()
	r := Must[*zstd.Decoder](t)(zstd.NewReader(bytes.NewReader(pack)))
	defer r.Close()
	var b bytes.Buffer
	w := Must[*zstd.Encoder](t)(zstd.NewWriter(&b))
	_ = Must[int64](t)(io.Copy(w, r))
	Check(t, w.Close())
	return b.Bytes()
}
