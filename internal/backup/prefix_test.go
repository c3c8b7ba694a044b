package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// smallPayload is a message with a payload that an append leaves in the log.
var smallPayload = `{"text":"` + strings.Repeat("small ", 1000) + `"}`

// shown is what a copy must have of a message.
type shown struct {
	ID                  uuid.UUID
	Position            int64
	Role, Type, Origin  string
	Created, Stored     time.Time
	Source, Body, Error string
}

func shownBy(t *testing.T, b *engine.Branch, n int64) (all []shown) {
	t.Helper()
	for _, m := range kit.Must[[]*engine.Message](t)(b.Range(t.Context(), 0, n)) {
		x := shown{m.ID, m.Position, m.Role, m.Type, m.OriginID, m.CreatedAt, m.StoredAt, string(m.Source), "", ""}
		if m.Unavailable != nil {
			x = shown{ID: m.ID, Position: m.Position, Error: fmt.Sprint(errors.Is(m.Unavailable, engine.ErrErased))}
		} else if body, err := m.Body(t.Context()); err != nil {
			t.Errorf("message %d: %v", m.Position, err)
		} else {
			x.Body = string(body)
		}
		all = append(all, x)
	}
	return all
}

// TestPrefix copies the beginnings of a branch whose messages are in logs and segments, on several lines. A
// copy shows the same, and does so when the original and its blobs are gone.
func TestPrefix(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(1<<10))
	prompt := `"` + strings.Repeat("Be kind. ", 300) + `"`
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{Branches: []ctxfolder.Branch{{SystemPrompt: []byte(prompt)}}}))
	put := func(b *engine.Branch, body string) uuid.UUID {
		t.Helper()
		at := kit.Append(t, b, engine.Draft{
			Body: []byte(body), OriginID: "o", Source: []byte(`{"from":"x"}`), Role: "r", Type: "t",
			CreatedAt: time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC),
		})
		return at.ID
	}
	var ids []uuid.UUID
	for i, body := range append(kit.Samples(), kit.LargeBody("b")) {
		ids = append(ids, put(c.Active(), body))
		if i == 3 {
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
		}
	}
	b := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", int64(len(ids))-1))
	last := put(b, kit.LargeBody("c"))
	kit.Check(t, b.Replace(ctx, last, engine.Draft{ID: last, Body: []byte(kit.LargeBody("d"))}))
	kit.Check(t, c.Seal(ctx))
	put(b, smallPayload) // in the log only
	for _, err := range erase.Messages(ctx, s, c.ID(), ids[1:2], erase.Options{Shared: true}) {
		kit.Check(t, err)
	}
	path := filepath.Join(dir, c.ID().String(), "messages", "branch-main", ids[5].String()+".json")
	raw := kit.Must[[]byte](t)(os.ReadFile(path))
	edited := strings.Replace(string(raw), `"message":{`, `"message":{"edited":true,`, 1)
	kit.Check(t, os.WriteFile(path, []byte(edited), 0o600), c.Refresh(ctx))
	length := kit.Must[int64](t)(b.Len(ctx))
	want := map[int64][]shown{}
	copies := map[int64]uuid.UUID{}
	for _, n := range []int64{0, 1, 3, length - 1, length} {
		want[n] = shownBy(t, b, n)
		copied := kit.Must[*engine.Context](t)(backup.Prefix(ctx, b, n, engine.Metadata{Title: "copy"}))
		m := copied.Metadata()
		text := kit.Must[[]byte](t)(func() ([]byte, error) { return copied.SystemPrompt(ctx, "main") }())
		if m.Title != "copy" || m.ParentID != c.ID() || len(m.Lines) != 1 || string(text) != prompt {
			t.Errorf("%d messages: %+v, prompt %s", n, m, text)
		}
		if diff := cmp.Diff(want[n], shownBy(t, copied.Active(), n+1)); diff != "" {
			t.Errorf("%d messages: %s", n, diff)
		}
		kit.Append(t, copied.Active(), engine.Draft{Body: []byte(`{"more":true}`)})
		copies[n] = copied.ID()
		kit.Check(t, copied.Close())
	}
	for _, n := range []int64{-1, length + 1} {
		if _, err := backup.Prefix(ctx, b, n, engine.Metadata{}); !errors.Is(err, engine.ErrPosition) {
			t.Errorf("%d messages: %v", n, err)
		}
	}
	if _, err := backup.Prefix(ctx, b, 1, engine.Metadata{ID: c.ID()}); !errors.Is(err, engine.ErrExist) {
		t.Errorf("the context's own id: %v", err)
	}
	kit.Check(t, c.Close())
	kit.Must[engine.TrashItem](t)(s.Delete(ctx, c.ID()))
	kit.Sweep(t, s, 0)
	for n, id := range copies {
		copied := kit.Must[*engine.Context](t)(s.Context(ctx, id))
		if diff := cmp.Diff(want[n], shownBy(t, copied.Active(), n)); diff != "" {
			t.Errorf("%d messages, without the original: %s", n, diff)
		}
		kit.Check(t, copied.Close())
	}
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		if err != nil || f.Severity == integrity.SeverityError {
			t.Errorf("%+v, %v", f, err)
		}
	}
}

// TestPrefixPowerCut cuts the power at each operation of a copy. Afterwards the copy is there as a whole or not at all,
// and the original is as it was.
func TestPrefixPowerCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made := 0
	for k := range kit.Cuts(1) {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder(), engine.WithTextThreshold(1<<10))...))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
		kit.Fill(t, c.Active(), 3)
		kit.Check(t, c.Seal(ctx))
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(smallPayload)})
		kit.Fill(t, c.Active(), 2)
		want := shownBy(t, c.Active(), 5)
		disk.CutAt(len(disk.Ops()) + k)
		copied, err := backup.Prefix(ctx, c.Active(), 5, engine.Metadata{ID: kit.TestID(60001)})
		acknowledged := err == nil
		if acknowledged {
			made++
			_ = copied.Close()
		}
		cut := disk.PowerCut()
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k))} {
			s := kit.Must[*engine.Store](t)(kit.Open("disk", kit.CrashOptions(disk.Crash(choice), engine.InOrder())...))
			for i, id := range []uuid.UUID{kit.TestID(60000), kit.TestID(60001)} {
				c, err := s.Context(ctx, id)
				if i == 1 && !acknowledged && errors.Is(err, engine.ErrNotExist) {
					continue
				}
				if err != nil {
					t.Fatalf("cut at %d (%s), disk %s: context %d: %v", k, kit.LastOp(disk), choice, i, err)
				}
				if diff := cmp.Diff(want, shownBy(t, c.Active(), 5)); diff != "" {
					t.Fatalf("cut at %d (%s), disk %s: context %d: %s", k, kit.LastOp(disk), choice, i, diff)
				}
				kit.Check(t, c.Close())
			}
			for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
				if err != nil || f.Severity == integrity.SeverityError {
					t.Fatalf("cut at %d (%s), disk %s: %+v, %v", k, kit.LastOp(disk), choice, f, err)
				}
			}
			kit.Check(t, s.Close())
		}
		if !cut {
			break
		}
	}
	if made == 0 {
		t.Error("no copy was finished")
	}
}
