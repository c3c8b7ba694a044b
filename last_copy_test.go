package ctxdir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// lastCopy is a context with a message whose file gets damaged and that a settled journal has.
type lastCopy struct {
	t      *testing.T
	s      *Store
	c      *Context
	dir    string
	ids    []uuid.UUID
	file   string // of message 1
	intact []byte // its content
}

// newLastCopy makes four messages, settles their journal, and appends one more.
func newLastCopy(t *testing.T, opts ...Option) *lastCopy {
	x := &lastCopy{t: t}
	x.c, x.dir = newContext(t, append([]Option{WithFoldBytes(-1), withRetain(1), withoutPause()}, opts...)...)
	x.s = x.c.store
	for i := range 4 {
		x.append(fmt.Sprintf(`{"role":"user","content":"message %d"}`, i))
	}
	check(t, x.c.Fold(context.Background()))
	x.append(`{"role":"user","content":"message 4"}`)
	x.file = filepath.Join(x.dir, "messages", "branch-main", x.ids[1].String()+".json")
	x.intact = must[[]byte](t)(os.ReadFile(x.file))
	return x
}

func (x *lastCopy) append(body string) {
	x.t.Helper()
	at := must[Appended](x.t)(x.c.Active().Append(context.Background(), Draft{Body: []byte(body)}))
	x.ids = append(x.ids, at.ID)
}

// there fails unless a new handle gets message 1 whole, for the reason when.
func (x *lastCopy) there(when string) {
	x.t.Helper()
	ctx := context.Background()
	c := must[*Context](x.t)(x.s.Context(ctx, x.c.ID()))
	defer c.Close()
	m := must[*Message](x.t)(c.Active().Message(ctx, x.ids[1]))
	if m.Unavailable != nil || m.Edited || bodyOf(m) != `{"role":"user","content":"message 1"}` {
		x.t.Errorf("%s: edited %v, unavailable: %v", when, m.Edited, m.Unavailable)
	}
}

func (x *lastCopy) repair() error {
	return ended(x.s.Repair(context.Background(), nil, CheckOptions{}))
}

// damages are what may lie in the place of a message's file; trashed says that it holds something of its own, which has to go to trash.
var damages = []struct {
	name    string
	trashed bool
	do      func(x *lastCopy) error
}{
	{"missing", false, func(x *lastCopy) error { return os.Remove(x.file) }},
	{"empty", false, func(x *lastCopy) error { return os.WriteFile(x.file, nil, 0o600) }},
	{"zero bytes", false, func(x *lastCopy) error { return os.WriteFile(x.file, make([]byte, len(x.intact)), 0o600) }},
	{"truncated", false, func(x *lastCopy) error { return os.WriteFile(x.file, x.intact[:len(x.intact)/2], 0o600) }},
	{"a wrong byte", true, func(x *lastCopy) error { return os.WriteFile(x.file, append([]byte("["), x.intact[1:]...), 0o600) }},
	{"an edit that is no JSON", true, func(x *lastCopy) error {
		return os.WriteFile(x.file, append(slices.Clone(x.intact), "note to self"...), 0o600)
	}},
	{"another message", true, func(x *lastCopy) error {
		other := must[[]byte](x.t)(os.ReadFile(strings.Replace(x.file, x.ids[1].String(), x.ids[2].String(), 1)))
		return os.WriteFile(x.file, other, 0o600)
	}},
	{"a folder", true, func(x *lastCopy) error {
		check(x.t, os.Remove(x.file))
		return os.Mkdir(x.file, 0o700)
	}},
	{"a link", true, func(x *lastCopy) error {
		check(x.t, os.Remove(x.file))
		return os.Symlink("elsewhere", x.file)
	}},
}

// verbs are the operations that settle or remove journals.
var verbs = map[string]func(x *lastCopy) error{
	"archive":   func(x *lastCopy) error { _, err := x.c.Archive(context.Background(), ArchiveOptions{}); return err },
	"unarchive": func(x *lastCopy) error { return x.unarchive() },
	"files":     func(x *lastCopy) error { return ended(x.c.Files(context.Background())) },
	"fold twice": func(x *lastCopy) error {
		check(x.t, x.c.Fold(context.Background()))
		x.append(`{"role":"user","content":"another"}`)
		return x.c.Fold(context.Background())
	},
	"erase": func(x *lastCopy) error {
		return ended(x.s.Erase(context.Background(), x.c.ID(), x.ids[3:4], EraseOptions{}))
	},
	"externalise": func(x *lastCopy) error { _, err := x.c.Externalise(context.Background(), 1, false); return err },
	"gc": func(x *lastCopy) error {
		return ended(x.s.Collect(context.Background(), Collecting{Grace: DefaultGrace}))
	},
	"restore": func(x *lastCopy) error { return x.restore() },
	"repair":  func(x *lastCopy) error { return x.repair() },
	"repair of a journal": func(x *lastCopy) error {
		check(x.t, x.c.log.Fold(context.Background(), false))
		journal := filepath.Join(x.dir, "journal-2.jsonl")
		check(x.t, os.WriteFile(journal, flipped(must[[]byte](x.t)(os.ReadFile(journal))), 0o600))
		return x.repair()
	},
	"appends": func(x *lastCopy) error {
		for range 4 { // more than stay
			x.append(`{"role":"user","content":"another"}`)
			check(x.t, x.c.log.Fold(context.Background(), false))
		}
		return nil
	},
}

// unarchive archives a branch beside, and brings it back.
func (x *lastCopy) unarchive() error {
	ctx := context.Background()
	b := must[*Branch](x.t)(x.c.NewBranch(ctx, "beside"))
	fill(x.t, b, 3)
	must[Archived](x.t)(x.c.Archive(ctx, ArchiveOptions{Branch: "beside"}))
	must[Archived](x.t)(x.c.Unarchive(ctx, nil))
	return nil
}

// restore collects a branch whose message is lost, and brings it back from trash.
func (x *lastCopy) restore() error {
	ctx := context.Background()
	b := must[*Branch](x.t)(x.c.NewBranch(ctx, "beside"))
	fill(x.t, b, 3)
	check(x.t, x.c.Remove(ctx, "beside"), ended(x.s.Collect(ctx, Collecting{Grace: DefaultGrace})))
	for item, err := range x.s.Trash(ctx) {
		check(x.t, err)
		if item.Kind == "line" {
			must[Restored](x.t)(x.s.Restore(ctx, itemID(item.Path)))
		}
	}
	return x.c.Fold(ctx)
}

// TestLastCopyOfAMessage: whatever is done to a context beside a damaged file, the message that the journal has stays, and its file is made again, or it
// goes into a pack.
func TestLastCopyOfAMessage(t *testing.T) {
	for verb, do := range verbs {
		for _, damage := range damages {
			t.Run(verb+"/"+damage.name, func(t *testing.T) {
				t.Parallel()
				x := newLastCopy(t)
				check(t, damage.do(x), do(x))
				x.there("at once")
				check(t, x.repair())
				x.there("after a repair")
				if !damage.trashed {
					return
				}
				kept, _ := filepath.Glob(filepath.Join(x.dir, "trash", "*", filepath.Base(x.file)))
				if len(kept) == 0 && verb != "externalise" { // which replaces the message
					t.Error("what lay in the file's place is not in trash")
				}
			})
		}
	}
}
