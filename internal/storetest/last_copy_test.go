package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// lastCopy is a context with a message whose file gets damaged and that a settled journal has.
type lastCopy struct {
	t      *testing.T
	s      *engine.Store
	c      *engine.Context
	dir    string
	ids    []uuid.UUID
	file   string // of message 1
	intact []byte // its content
}

// newLastCopy makes four messages, settles their journal, and appends one more.
func newLastCopy(t *testing.T) *lastCopy {
	s, dir := kit.NewStore(t, engine.WithFoldBytes(-1), engine.WithRetain(-1), engine.WithoutPause())
	x := newLastCopyIn(t, s)
	x.dir = filepath.Join(dir, x.c.ID().String())
	x.file = filepath.Join(dir, x.file)
	x.intact = kit.Must[[]byte](t)(os.ReadFile(x.file))
	return x
}

// newLastCopyIn is newLastCopy in a store, to which the path of the file is relative then.
func newLastCopyIn(t *testing.T, s *engine.Store) *lastCopy {
	x := &lastCopy{t: t, s: s, c: kit.Must[*engine.Context](t)(s.Create(context.Background(), engine.Metadata{}))}
	t.Cleanup(func() { _ = x.c.Close() })
	for i := range 4 {
		kit.Check(t, x.append(fmt.Sprintf(`{"role":"user","content":"message %d"}`, i)))
	}
	kit.Check(t, x.c.Fold(context.Background()), x.append(`{"role":"user","content":"message 4"}`))
	x.file = filepath.Join(x.c.ID().String(), "messages", "branch-main", x.ids[1].String()+".json")
	return x
}

func (x *lastCopy) append(body string) error {
	at, err := x.c.Active().Append(context.Background(), engine.Draft{Body: []byte(body)})
	x.ids = append(x.ids, at.ID)
	return err
}

// there fails unless a new handle gets message 1 whole, for the reason when.
func (x *lastCopy) there(when string) {
	x.t.Helper()
	ctx := context.Background()
	c := kit.Must[*engine.Context](x.t)(x.s.Context(ctx, x.c.ID()))
	defer c.Close()
	m := kit.Must[[]*engine.Message](x.t)(c.Active().Range(ctx, 1, 2))[0]
	if m.Unavailable != nil || m.Edited || kit.BodyOf(m) != `{"role":"user","content":"message 1"}` {
		x.t.Errorf("%s: edited %v, unavailable: %v", when, m.Edited, m.Unavailable)
	}
}

func (x *lastCopy) repair() error {
	return kit.IterationError(x.s.Repair(context.Background(), nil, engine.CheckOptions{}))
}

// damages are what may lie in the place of a message's file; trashed says that it holds something of its own, which has
// to go to trash.
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
		other := kit.Must[[]byte](x.t)(os.ReadFile(strings.Replace(x.file, x.ids[1].String(), x.ids[2].String(), 1)))
		return os.WriteFile(x.file, other, 0o600)
	}},
	{"a folder", true, func(x *lastCopy) error {
		kit.Check(x.t, os.Remove(x.file))
		return os.Mkdir(x.file, 0o700)
	}},
	{"a link", true, func(x *lastCopy) error {
		kit.Check(x.t, os.Remove(x.file))
		return os.Symlink("elsewhere", x.file)
	}},
}

// verbs are the operations that settle or remove journals.
var verbs = map[string]func(ctx context.Context, x *lastCopy) error{
	"archive": func(ctx context.Context, x *lastCopy) error {
		_, err := x.c.Archive(ctx, engine.ArchiveOptions{})
		return err
	},
	"unarchive": func(ctx context.Context, x *lastCopy) error {
		b, err := x.beside(ctx)
		if err == nil {
			_, err = x.c.Archive(ctx, engine.ArchiveOptions{Branch: b})
		}
		if err == nil {
			_, err = x.c.Unarchive(ctx, nil)
		}
		return err
	},
	"files": func(ctx context.Context, x *lastCopy) error { return kit.IterationError(x.c.Files(ctx)) },
	"fold twice": func(ctx context.Context, x *lastCopy) error {
		return errors.Join(x.c.Fold(ctx), x.append(`{"role":"user","content":"another"}`), x.c.Fold(ctx))
	},
	"erase": func(ctx context.Context, x *lastCopy) error {
		return kit.IterationError(erase.Messages(ctx, x.s, x.c.ID(), x.ids[3:4], erase.Options{}))
	},
	"externalise": func(ctx context.Context, x *lastCopy) error {
		_, err := x.c.Externalise(ctx, 1, false)
		return err
	},
	"gc": func(ctx context.Context, x *lastCopy) error {
		defer func(was func() time.Time) { x.s.Options.Clock = was }(x.s.Options.Clock)
		x.s.Options.Clock = func() time.Time { return time.Now().Add(24 * time.Hour) }
		return kit.IterationError(trash.Collect(ctx, x.s, trash.CollectOptions{Grace: trash.DefaultGrace}))
	},
	"restore": func(ctx context.Context, x *lastCopy) error {
		b, err := x.beside(ctx)
		if err == nil {
			err = x.c.Remove(ctx, b)
		}
		for item, terr := range trash.List(ctx, x.s) {
			if err = errors.Join(err, terr); err == nil && item.Kind == ctxfolder.TrashLine {
				_, err = trash.Restore(ctx, x.s, item.Item)
			}
		}
		return errors.Join(err, x.c.Fold(ctx))
	},
	"repair": func(_ context.Context, x *lastCopy) error { return x.repair() },
	"repair of a journal": func(ctx context.Context, x *lastCopy) error {
		kit.Check(x.t, x.c.Log.Fold(ctx, false))
		journal := filepath.Join(x.dir, "journal-2.jsonl")
		kit.Write(x.t, journal, kit.FlipBit(kit.Must[[]byte](x.t)(os.ReadFile(journal))))
		return x.repair()
	},
	"appends": func(ctx context.Context, x *lastCopy) (err error) {
		for range 4 { // more than stay
			err = errors.Join(err, x.append(`{"role":"user","content":"another"}`), x.c.Log.Fold(ctx, false))
		}
		return err
	},
}

// beside makes a branch with messages of its own.
func (x *lastCopy) beside(ctx context.Context) (string, error) {
	b, err := x.c.NewBranch(ctx, "beside")
	if err == nil {
		_, err = b.AppendBatch(ctx, []engine.Draft{{Body: []byte(`{"n":1}`)}, {Body: []byte(`{"n":2}`)}})
	}
	return "beside", err
}

// TestLastCopyOfAMessage: whatever is done to a context beside a damaged file, the message that the journal has stays,
// and its file is made again, or it goes into a pack.
func TestLastCopyOfAMessage(t *testing.T) {
	for verb, do := range verbs {
		for _, damage := range damages {
			t.Run(verb+"/"+damage.name, func(t *testing.T) {
				t.Parallel()
				x := newLastCopy(t)
				kit.Check(t, damage.do(x), do(context.Background(), x))
				x.there("at once")
				kit.Check(t, x.repair())
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
