package trash_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestSweepUndurable replaces a message with a payload, or a prompt, without making that durable, and sweeps. Then the
// power is cut: whichever version is left, its payload is there.
func TestSweepUndurable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	refused := func(o crashfs.Op) error {
		if o.Kind == crashfs.KindDatasync && strings.Contains(o.Path, "/log-") ||
			o.Kind == crashfs.KindSync && strings.Contains(o.Path, "/.log-") {
			return syscall.EIO
		}
		return nil
	}
	for name, replace := range map[string]func(disk *crashfs.FS, c *engine.Context, at engine.AppendResult){
		"relaxed": func(disk *crashfs.FS, c *engine.Context, at engine.AppendResult) {
			s := kit.Must[*engine.Store](t)(kit.Open("disk", kit.CrashOptions(disk, engine.WithDurability(engine.Relaxed))...))
			relaxed := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
			kit.Check(t, relaxed.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(`{"final":true}`)}))
			t.Cleanup(func() { kit.Check(t, relaxed.Close(), s.Close()) })
		},
		"refused": func(disk *crashfs.FS, c *engine.Context, at engine.AppendResult) {
			disk.Fail(kit.Serialise(refused))
			if err := c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(`{"final":true}`)}); !errors.Is(err, engine.ErrDurability) {
				t.Errorf("replace: %v", err)
			}
			disk.Fail(nil)
		},
		"refused metadata": func(disk *crashfs.FS, c *engine.Context, _ engine.AppendResult) {
			disk.Fail(kit.Serialise(refused))
			if err := setPrompt(ctx, c, `"another prompt"`); !errors.Is(err, engine.ErrDurability) {
				t.Errorf("update: %v", err)
			}
			disk.Fail(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := crashfs.New()
			s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(1)}))
			at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("a"))})
			kit.Check(t, setPrompt(ctx, c, `"a prompt"`))
			replace(disk, c, at)
			other := kit.Must[*engine.Store](t)(kit.Open("disk", kit.CrashOptions(disk)...))
			for _, err := range trash.Purge(ctx, other, nil, 0, false) { // the replaced version
				kit.Check(t, err)
			}
			kit.Sweep(t, other, 0)
			for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(1), crashfs.Random(2)} {
				left := kit.Must[*engine.Store](t)(kit.Open("disk", kit.CrashOptions(disk.Crash(choice))...))
				for f, err := range checking.Check(ctx, left, nil, checking.Options{ReadData: true}) {
					if kit.Check(t, err); f.Severity == integrity.SeverityError {
						t.Errorf("disk %s: %s: %s %s", choice, f.Kind, f.Path, f.Detail)
					}
				}
				kit.Check(t, left.Close())
			}
			kit.Check(t, c.Close(), s.Close(), other.Close())
		})
	}
}

func setPrompt(ctx context.Context, c *engine.Context, prompt string) error {
	return c.Update(ctx, func(m *engine.Metadata) error {
		m.Branches[0].SystemPrompt = []byte(prompt)
		return nil
	})
}
