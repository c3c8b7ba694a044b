package storetest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestDamage damages a context in ways of the table in docs/RELIABILITY.md. It has those in which several packages take
// part; TestRepair of package integrity has the damages of logs, segments and files of messages. lost is how many of the
// 70 messages that branches show may be gone when all are sealed. While a log has them, none may be.
func TestDamage(t *testing.T) {
	t.Parallel()
	editLines := func(f func(lines []any)) func(*kit.Patient) {
		return func(p *kit.Patient) { p.Metadata(func(m map[string]any) { f(m["lines"].([]any)) }) }
	}
	for _, d := range []struct {
		name string
		do   func(p *kit.Patient)
		kind integrity.Kind // that check tells, "" for nothing it must tell
		lost int
	}{
		{"valid message with another id", func(p *kit.Patient) {
			p.Change(p.Main[30], func(b []byte) []byte { return bytes.Replace(b, []byte(`"id":"0`), []byte(`"id":"1`), 1) })
		}, integrity.KindDamaged, 0},
		{"message file of 65 MiB", func(p *kit.Patient) { kit.Check(p.T, os.Truncate(p.Main[30], 65<<20)) }, integrity.KindDamaged, 0},
		{"branch folder is a link to itself", func(p *kit.Patient) {
			p.Remove(filepath.Join(p.Dir, "messages", "branch-alt"))
			p.Link("branch-alt", filepath.Join(p.Dir, "messages", "branch-alt"))
		}, integrity.KindFolder, 0},
		{"messages is a link out of the store", func(p *kit.Patient) {
			p.Remove(filepath.Join(p.Dir, "messages"))
			p.Link(filepath.Dir(p.Outside), filepath.Join(p.Dir, "messages"))
		}, integrity.KindFolder, 0},
		{"log with a tail of zeros", func(p *kit.Patient) {
			for _, path := range p.Glob("log-*.jsonl") {
				p.Change(path, func(b []byte) []byte { return append(b, make([]byte, 512)...) })
			}
		}, "", 0},
		{"index.json missing", func(p *kit.Patient) { _ = os.Remove(filepath.Join(p.Dir, "index.json")) }, "", 0},
		{"index.json of zeros", func(p *kit.Patient) {
			kit.Write(p.T, filepath.Join(p.Dir, "index.json"), make([]byte, 100))
		}, integrity.KindIndex, 0},

		{"metadata.json with an unknown branch", func(p *kit.Patient) {
			p.Metadata(func(m map[string]any) { m["active_branch"] = "other" })
		}, integrity.KindMetadata, 0},
		{"metadata.json without branches", func(p *kit.Patient) {
			p.Metadata(func(m map[string]any) { m["branches"] = []any{} })
		}, integrity.KindMetadata, 0},
		{"metadata.json with a base beyond its parent", editLines(func(lines []any) {
			lines[1].(map[string]any)["base"] = 500
		}), integrity.KindMetadata, 0},
		{"metadata.json with a parent that a line does not go on from", editLines(func(lines []any) {
			lines[1].(map[string]any)["parent"] = lines[2].(map[string]any)["id"]
		}), integrity.KindMetadata, 0},
		{"metadata.json with a cycle of parents", editLines(func(lines []any) {
			a, b := lines[0].(map[string]any), lines[1].(map[string]any)
			a["parent"], a["base"], b["parent"], b["base"] = b["id"], 20, a["id"], 20
		}), integrity.KindMetadata, 0},

		{"blob missing", func(p *kit.Patient) { p.Remove(p.Blobs[0]) }, "", 2},
		{"blob damaged", func(p *kit.Patient) {
			p.Change(p.Blobs[0], func(b []byte) []byte { return slices.Concat(b[:len(b)*3/4], kit.FlipBit(b[len(b)*3/4:])) })
		}, integrity.KindBlob, 2},
		{"blob of the wrong size", func(p *kit.Patient) { kit.Halve(p.T, p.Blobs[0]) }, integrity.KindBlob, 2},
		{"folder of blobs replaced by a link out of the store", func(p *kit.Patient) {
			folder := filepath.Dir(filepath.Dir(p.Blobs[0]))
			p.Remove(folder)
			p.Link(p.T.TempDir(), folder)
		}, integrity.KindFolder, 2},
		{"blobs replaced by a file", func(p *kit.Patient) {
			folder := filepath.Join(p.Store.Path(), "blobs")
			p.Remove(folder)
			kit.Write(p.T, folder, []byte("no folder"))
		}, integrity.KindFolder, 4},
		{"lock replaced by a folder", func(p *kit.Patient) {
			path := filepath.Join(p.Store.Path(), "locks", p.ID.String())
			p.Remove(path, p.Main[5])
			p.Mkdir(path)
		}, integrity.KindLock, 0},
		{"lock replaced by a link out of the store", func(p *kit.Patient) {
			path := filepath.Join(p.Store.Path(), "locks", p.ID.String()+".seal")
			p.Remove(path, p.Main[5])
			p.Link(p.Outside, path)
		}, integrity.KindLock, 0},
		{"erasing.json replaced by a link out of the store", func(p *kit.Patient) {
			p.Link(p.Outside, filepath.Join(p.Dir, "erasing.json"))
		}, integrity.KindErasing, 0},
		{"left-over staging folder", func(p *kit.Patient) {
			p.Mkdir(filepath.Join(p.Store.Path(), "staging", uuid.NewString()))
		}, "", 0},
	} {
		for _, log := range []bool{false, true} {
			name, lost := d.name, d.lost
			if log {
				name, lost = d.name+", in a log", 0
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := kit.NewPatient(t, log)
				d.do(p)
				found, gone := p.Heal(checking.Options{})
				if d.kind != "" && !slices.ContainsFunc(found, func(f integrity.Finding) bool { return f.Kind == d.kind }) {
					t.Errorf("check did not tell of %s: %+v", d.kind, found)
				}
				if gone > lost {
					t.Errorf("%d messages are gone, at most %d had to be", gone, lost)
				}
			})
		}
	}
}
