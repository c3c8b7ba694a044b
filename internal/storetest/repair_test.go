package storetest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestDamage damages a context in each way of the table in docs/RELIABILITY.md. lost is how many of the 70 messages
// that branches show may be gone when message files are the only copy, and lost2 when journals still hold them.
func TestDamage(t *testing.T) {
	const (
		shared = 2  // a message before the fork is shown by two branches
		all    = 70 // that branches show
	)
	none := map[string]int{}
	for _, d := range []struct {
		name        string
		do          func(p *kit.Patient)
		kind        integrity.Kind // that check tells, "" for nothing it must tell
		lost, lost2 int
		branches    map[string]int // lengths that differ
	}{
		{"message file missing", func(p *kit.Patient) { p.Remove(p.Main[5]) }, integrity.KindMissing, shared, 0, none},
		{"message file empty", func(p *kit.Patient) { kit.Write(p.T, p.Main[5], nil) }, integrity.KindDamaged, shared, 0, none},
		{"message file truncated", func(p *kit.Patient) {
			p.Change(p.Main[5], func(b []byte) []byte { return b[:30] })
		}, integrity.KindDamaged, shared, 0, none},
		{"message file NUL-filled", func(p *kit.Patient) {
			p.Change(p.Main[30], func(b []byte) []byte { return make([]byte, len(b)) })
		}, integrity.KindDamaged, 1, 0, none},
		{"bit flipped, time kept", func(p *kit.Patient) {
			p.KeepTime(p.Main[5], func() { p.Change(p.Main[5], kit.FlipBit) })
		}, integrity.KindDamaged, shared, 0, none},
		{"three in a row NUL-filled", func(p *kit.Patient) {
			for _, path := range p.Main[30:33] {
				p.Change(path, func(b []byte) []byte { return make([]byte, len(b)) })
			}
		}, integrity.KindDamaged, 3, 0, none},
		{"valid JSON with another id", func(p *kit.Patient) {
			p.Change(p.Main[30], func(b []byte) []byte { return bytes.Replace(b, []byte(`"id":"0`), []byte(`"id":"1`), 1) })
		}, integrity.KindDamaged, 1, 0, none},
		{"in the wrong branch folder", func(p *kit.Patient) { p.Move(p.Main[30], "messages/branch-alt") }, integrity.KindMisplaced, 0, 0, none},
		{"in messages itself", func(p *kit.Patient) { p.Move(p.Main[30], "messages") }, integrity.KindMisplaced, 0, 0, none},
		{"two files with one id", func(p *kit.Patient) {
			kit.Write(p.T, filepath.Join(p.Dir, "messages", "branch-alt", filepath.Base(p.Main[30])), kit.Must[[]byte](p.T)(os.ReadFile(p.Main[30])))
		}, integrity.KindDuplicate, 0, 0, none},
		{"replaced by a folder", func(p *kit.Patient) {
			p.Remove(p.Main[30])
			p.Mkdir(p.Main[30])
		}, integrity.KindDamaged, 1, 0, none},
		{"replaced by a link out of the store", func(p *kit.Patient) {
			p.Remove(p.Main[30])
			p.Link(p.Outside, p.Main[30])
		}, integrity.KindDamaged, 1, 0, none},
		{"branch folder and index renamed away", func(p *kit.Patient) {
			p.Remove(append(p.Glob("index/*.rows"), p.Glob("index.json")...)...)
			if err := os.Rename(filepath.Join(p.Dir, "messages", "branch-alt"), filepath.Join(p.Dir, "messages", "branch-q")); err != nil {
				p.T.Fatal(err)
			}
		}, integrity.KindIndex, 0, 0, none},
		{"extra unindexed file", func(p *kit.Patient) { p.Foreign("branch-main", 40) }, integrity.KindForeign, 0, 0, none},
		{"branch folder missing", func(p *kit.Patient) {
			p.Remove(filepath.Join(p.Dir, "messages", "branch-alt"))
		}, integrity.KindMissing, 10, 0, none},
		{"branch folder is a link out of the store", func(p *kit.Patient) {
			p.Remove(filepath.Join(p.Dir, "messages", "branch-alt"))
			p.Link(filepath.Dir(p.Outside), filepath.Join(p.Dir, "messages", "branch-alt"))
		}, "", 10, 0, none},

		{"branch folder is a link to itself, index.json missing", func(p *kit.Patient) {
			p.Remove(append(p.Glob("index.json"), filepath.Join(p.Dir, "messages", "branch-alt"))...)
			p.Link("branch-alt", filepath.Join(p.Dir, "messages", "branch-alt"))
		}, integrity.KindFolder, 10, 0, none},

		{"two files under each other's names", func(p *kit.Patient) {
			a, b := kit.Must[[]byte](p.T)(os.ReadFile(p.Main[30])), kit.Must[[]byte](p.T)(os.ReadFile(p.Main[31]))
			kit.Write(p.T, p.Main[30], b)
			kit.Write(p.T, p.Main[31], a)
		}, integrity.KindDamaged, 0, 0, none},
		{"message file of 65 MiB", func(p *kit.Patient) {
			if err := os.Truncate(p.Main[30], 65<<20); err != nil {
				p.T.Fatal(err)
			}
		}, integrity.KindDamaged, 1, 0, none},
		{"messages is a file", func(p *kit.Patient) {
			p.Remove(filepath.Join(p.Dir, "messages"))
			kit.Write(p.T, filepath.Join(p.Dir, "messages"), nil)
		}, integrity.KindFolder, all, 0, none},
		{"messages is a link out of the store", func(p *kit.Patient) {
			p.Remove(filepath.Join(p.Dir, "messages"))
			p.Link(filepath.Dir(p.Outside), filepath.Join(p.Dir, "messages"))
		}, integrity.KindFolder, all, 0, none},

		{"index.json missing", func(p *kit.Patient) { p.Remove(p.Glob("index.json")...) }, integrity.KindIndex, 0, 0, none},
		{"index.json empty", func(p *kit.Patient) { kit.Write(p.T, p.Glob("index.json")[0], nil) }, integrity.KindIndex, 0, 0, none},
		{"index.json truncated", func(p *kit.Patient) {
			p.Change(p.Glob("index.json")[0], func(b []byte) []byte { return b[:len(b)/2] })
		}, integrity.KindIndex, 0, 0, none},
		{"index.json with a path out of the store", func(p *kit.Patient) {
			p.Change(p.Glob("index.json")[0], func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("branch-main"), []byte("../../outside")) })
		}, integrity.KindIndex, 0, 0, none},
		{"index.json of another context", func(p *kit.Patient) {
			p.Change(p.Glob("index.json")[0], func(b []byte) []byte {
				return bytes.ReplaceAll(b, []byte(p.ID.String()), []byte(uuid.NewString()))
			})
		}, integrity.KindIndex, 0, 0, none},
		{"index.json with a count that cannot be", func(p *kit.Patient) {
			p.EditIndex(regexp.MustCompile(`"count":\d+`), `"count":4611686018427387904`)
		}, integrity.KindIndex, 0, 0, none},
		{"index.json with a count of rows that are not there", func(p *kit.Patient) {
			p.EditIndex(regexp.MustCompile(`"count":\d+`), `"count":99999999999999`)
		}, integrity.KindIndex, 0, 0, none},
		{"index.json with a number that cannot be", func(p *kit.Patient) {
			p.EditIndex(regexp.MustCompile(`"seq": \d+`), `"seq": 9223372036854775807`)
		}, integrity.KindIndex, 0, 0, none},
		{"row file missing", func(p *kit.Patient) { p.Remove(p.Glob("index/*.rows")...) }, integrity.KindIndex, 0, 0, none},
		{"row file torn", func(p *kit.Patient) {
			p.Change(p.Glob("index/*.rows")[0], func(b []byte) []byte { return b[:len(b)-100] })
		}, integrity.KindIndex, 0, 0, none},
		{"row damaged", func(p *kit.Patient) {
			p.Change(p.Glob("index/*.rows")[0], kit.FlipBit)
		}, integrity.KindIndex, 0, 0, none},
		{"rows swapped", func(p *kit.Patient) {
			p.Change(p.Glob("index/*.rows")[0], func(b []byte) []byte {
				return slices.Concat(b[256:512], b[:256], b[512:])
			})
		}, integrity.KindIndex, 0, 0, none},
		{"index and rows missing", func(p *kit.Patient) {
			p.Remove(append(p.Glob("index/*.rows"), p.Glob("index.json")...)...)
		}, integrity.KindIndex, 0, 0, none},

		{"journals missing", func(p *kit.Patient) { p.Remove(p.Glob("journal-*.jsonl")...) }, integrity.KindIndex, 0, 0, none},
		{"journals and index missing", func(p *kit.Patient) {
			p.Remove(slices.Concat(p.Glob("journal-*.jsonl"), p.Glob("index.json"), p.Glob("index/*.rows"))...)
		}, integrity.KindIndex, 0, 0, none},
		{"journals with NUL tails", func(p *kit.Patient) {
			for _, j := range p.Glob("journal-*.jsonl") {
				p.Change(j, func(b []byte) []byte { return append(b, make([]byte, 512)...) })
			}
		}, "", 0, 0, none},
		{"journals damaged in the middle", func(p *kit.Patient) {
			for _, j := range p.Glob("journal-*.jsonl") {
				p.Change(j, func(b []byte) []byte { return kit.FlipBit(bytes.TrimRight(b, "\n")) })
			}
		}, "", 0, 0, none},
		{"journals of another generation", func(p *kit.Patient) {
			for _, j := range p.Glob("journal-*.jsonl") {
				p.Change(j, func(b []byte) []byte { return bytes.Replace(b, []byte(`"generation":`), []byte(`"generation":9`), 1) })
			}
		}, integrity.KindIndex, 0, 0, none},

		{"metadata.json missing", func(p *kit.Patient) { p.Remove(p.Glob("metadata.json")...) }, integrity.KindMetadata, 0, 0, none},
		{"metadata.json truncated", func(p *kit.Patient) {
			p.Change(p.Glob("metadata.json")[0], func(b []byte) []byte { return b[:20] })
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json with an unknown branch", func(p *kit.Patient) {
			p.Change(p.Glob("metadata.json")[0], func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"active_branch": "main"`), []byte(`"active_branch": "other"`), 1)
			})
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json without branches", func(p *kit.Patient) {
			p.Metadata(func(m map[string]any) { m["branches"] = []any{} })
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json with a base beyond its parent", func(p *kit.Patient) {
			p.Change(p.Glob("metadata.json")[0], func(b []byte) []byte { return bytes.Replace(b, []byte(`"base": 20`), []byte(`"base": 500`), 1) })
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json with a parent that a line does not go on from", func(p *kit.Patient) {
			p.Metadata(func(m map[string]any) {
				lines := m["lines"].([]any)
				lines[1].(map[string]any)["parent"] = lines[2].(map[string]any)["id"]
			})
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json with a wrong parent, journals and index missing", func(p *kit.Patient) {
			p.Metadata(func(m map[string]any) {
				lines := m["lines"].([]any)
				lines[1].(map[string]any)["parent"] = lines[2].(map[string]any)["id"]
			})
			p.Remove(slices.Concat(p.Glob("journal-*.jsonl"), p.Glob("index.json"), p.Glob("index/*.rows"))...)
		}, integrity.KindStructure, 0, 0, none},
		{"metadata.json with a cycle of bases", func(p *kit.Patient) { p.Cycle() }, integrity.KindMetadata, 0, 0, none},
		{"metadata.json, journals and index missing", func(p *kit.Patient) {
			p.Remove(slices.Concat(p.Glob("metadata.json"), p.Glob("journal-*.jsonl"), p.Glob("index.json"), p.Glob("index/*.rows"))...)
		}, integrity.KindMetadata, 0, 0, map[string]int{"empty": -1}},

		{"blob missing", func(p *kit.Patient) { p.Remove(p.Blobs[0]) }, "", 2, 0, none},
		{"blob damaged", func(p *kit.Patient) {
			p.Change(p.Blobs[0], func(b []byte) []byte { return slices.Concat(b[:len(b)*3/4], kit.FlipBit(b[len(b)*3/4:])) })
		}, integrity.KindBlob, 2, 0, none},
		{"blob of the wrong size", func(p *kit.Patient) {
			p.Change(p.Blobs[0], func(b []byte) []byte { return b[:len(b)/2] })
		}, integrity.KindBlob, 2, 0, none},
		{"folder of blobs replaced by a link out of the store", func(p *kit.Patient) {
			folder := filepath.Dir(filepath.Dir(p.Blobs[0]))
			if err := os.RemoveAll(folder); err != nil {
				p.T.Fatal(err)
			}
			p.Link(p.T.TempDir(), folder)
		}, integrity.KindFolder, 2, 0, none},
		{"blobs replaced by a file", func(p *kit.Patient) {
			folder := filepath.Join(p.Store.Path(), "blobs")
			if err := os.RemoveAll(folder); err != nil {
				p.T.Fatal(err)
			}
			kit.Write(p.T, folder, []byte("no folder"))
		}, integrity.KindFolder, 4, 0, none},
		{"lock replaced by a folder", func(p *kit.Patient) {
			path := filepath.Join(p.Store.Path(), "locks", p.ID.String())
			p.Remove(path)
			p.Mkdir(path)
			p.Remove(p.Main[5])
		}, integrity.KindLock, shared, 0, none},
		{"lock replaced by a link out of the store", func(p *kit.Patient) {
			path := filepath.Join(p.Store.Path(), "locks", p.ID.String()+".fold")
			p.Remove(path)
			p.Link(p.Outside, path)
			p.Remove(p.Main[5])
		}, integrity.KindLock, shared, 0, none},
		{"erasing.json damaged", func(p *kit.Patient) {
			kit.Write(p.T, filepath.Join(p.Dir, "erasing.json"), []byte(`{"ctxdir":"erasing/1","messages":[],"blobs":["../../outside"]}`))
		}, integrity.KindErasing, 0, 0, none},
		{"erasing.json replaced by a link out of the store", func(p *kit.Patient) {
			p.Link(p.Outside, filepath.Join(p.Dir, "erasing.json"))
		}, integrity.KindErasing, 0, 0, none},
		{"left-over temporary file", func(p *kit.Patient) {
			path := filepath.Join(p.Dir, "messages", "branch-main", ".left")
			kit.Write(p.T, path, []byte("x"))
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
				p.T.Fatal(err)
			}
		}, integrity.KindTemporary, 0, 0, none},
		{"left-over staging folder", func(p *kit.Patient) {
			p.Mkdir(filepath.Join(p.Store.Path(), "staging", uuid.NewString()))
		}, "", 0, 0, none},
	} {
		for _, second := range []bool{false, true} {
			name, lost := d.name, d.lost
			if second {
				name, lost = d.name+", journals there", d.lost2
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := kit.NewPatient(t, second)
				for branch, n := range d.branches {
					if n < 0 {
						delete(p.Want, branch)
					}
				}
				d.do(p)
				found, gone := p.Heal(engine.CheckOptions{})
				if d.kind != "" && !slices.ContainsFunc(found, func(f engine.Finding) bool { return f.Kind == d.kind }) {
					t.Errorf("check did not tell of %s: %+v", d.kind, found)
				}
				if gone > lost {
					t.Errorf("%d messages are gone, at most %d had to be", gone, lost)
				}
			})
		}
	}
}
