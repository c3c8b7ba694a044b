//go:build unix

package trash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestHostilePieces: the messages of a line in trash that are not what was written there.
func TestHostilePieces(t *testing.T) {
	t.Parallel()
	x := uuid.NewString()
	type change = map[string]any
	// one makes an item of one message of a line that nobody knows, in the folder of branch main.
	one := func(text string) func(h *hoard) {
		return func(h *hoard) { h.like(change{"line": x, "name": engine.MainBranch, "from": 1, "to": 2}, text) }
	}
	// with changes the lines of what is in trash.
	with := func(change func(lines []string) []string) func(h *hoard) {
		return func(h *hoard) {
			b := kit.Must[[]byte](h.t)(os.ReadFile(filepath.Join(h.dir, h.line.Path, "messages-1.jsonl")))
			h.like(nil, strings.Join(change(strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")), ""))
		}
	}
	gap := func(text string) func(h *hoard) { return one(`{"ctxdir":"gap/1",` + text + "}\n") }
	endure(t, map[string]func(h *hoard){
		"none":                with(func([]string) []string { return nil }),
		"twice":               with(func(l []string) []string { l[1] = l[0]; return l }),
		"one is missing":      with(func(l []string) []string { return append(l[:1], l[2:]...) }),
		"one more":            with(func(l []string) []string { l[4] += "\n"; return append(l, l[4]) }),
		"in another order":    with(func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }),
		"an empty line":       with(func(l []string) []string { l[1] += "\n"; return l }),
		"torn":                with(func(l []string) []string { l[4] = l[4][:40]; return l }),
		"NULs":                with(func(l []string) []string { l[2] = strings.Repeat("\x00", len(l[2])-1) + "\n"; return l }),
		"not UTF-8":           with(func(l []string) []string { l[2] = strings.Replace(l[2], "zzz", "\xff\xfe\xfd", 1); return l }),
		"lines of a megabyte": with(func(l []string) []string { l[2] = strings.Repeat("[", 1<<20) + "\n"; return l }),
		"another line's":      one(envelope(kit.TestID(90), uuid.NewString(), 1, "")),
		"another's place":     one(envelope(kit.TestID(90), x, 2, "")),
		"an id that main shows": func(h *hoard) {
			one(envelope(h.id(2), x, 1, ""))(h)
		},
		"an id that its own branch shows": func(h *hoard) {
			one(envelope(h.id(0), x, 1, ""))(h)
		},
		"a file that main has": func(h *hoard) { one(envelope(kit.TestID(90), x, 1, `,"file":"`+h.id(2).String()+`"`))(h) },
		"an id twice": func(h *hoard) {
			h.like(change{"line": x, "from": 1, "to": 4},
				envelope(kit.TestID(90), x, 1, "")+envelope(kit.TestID(90), x, 2, "")+envelope(kit.TestID(90), x, 3, ""))
		},
		"no id":               one(envelope(uuid.Nil, x, 1, "")),
		"stored in year 9999": one(strings.Replace(envelope(kit.TestID(90), x, 1, ""), "2026", "9999", 1)),
		"stored in year 1":    one(strings.Replace(envelope(kit.TestID(90), x, 1, ""), "2026", "0001", 1)),
		"made in year 10000":  one(envelope(kit.TestID(90), x, 1, `,"created_at":"9999-12-31T23:59:59-14:00"`)),
		"controls": one(envelope(kit.TestID(90), x, 1,
			`,"branch":"\u001b[31m\u0000","role":"\u001b","type":"\n","origin_id":"../../x"`)),
		"of another format":      one(strings.Replace(envelope(kit.TestID(90), x, 1, ""), "message/1", "message/2", 1)),
		"a gap":                  gap(`"position":1,"id":"` + x + `","reason":"lost"`),
		"a gap of megabytes":     gap(`"position":1,"id":"` + x + `","reason":"` + strings.Repeat(`\u001b[31m`, 1<<17) + `"`),
		"a gap without a reason": gap(`"position":1,"id":"` + x + `"`),
		"a gap without an id":    gap(`"position":1,"reason":"lost"`),
		"a gap that was erased":  gap(`"position":1,"id":"` + x + `","reason":"erased"`),
		"a gap of nonsense":      gap(`"position":"1","id":7,"reason":[]`),
		"a gap elsewhere":        gap(`"position":-1,"id":"` + x + `","reason":"lost"`),
		"a gap over main": func(h *hoard) {
			h.like(change{"line": h.main, "parent": nil, "base": 0, "from": 0, "to": 1},
				fmt.Sprintf(`{"ctxdir":"gap/1","position":0,"id":"%s","reason":"erased"}`+"\n", h.id(0)))
		},
		"another message over main": func(h *hoard) {
			h.like(change{"line": h.main, "parent": nil, "base": 0, "from": 0, "to": 1}, envelope(kit.TestID(90), h.main, 0, ""))
		},
		"behind main": func(h *hoard) {
			h.like(change{"line": h.main, "parent": nil, "base": 0, "from": 3, "to": 4}, envelope(kit.TestID(90), h.main, 3, ""))
		},
		"far behind main": func(h *hoard) {
			h.like(change{"line": h.main, "parent": nil, "base": 0, "from": 5, "to": 6}, envelope(kit.TestID(90), h.main, 5, ""))
		},
	})
}

// id is that of a message which main shows.
func (h *hoard) id(at int) uuid.UUID { return uuid.MustParse(h.shown[engine.MainBranch][at][:36]) }
