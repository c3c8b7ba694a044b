package erase_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// indented is a message file as jq leaves it.
func indented(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	kit.Check(t, json.Indent(&out, b, "", "  "))
	return append(out.Bytes(), '\n')
}

// unescaped drops the count of references, and spells their name with an escape.
func respelled(t *testing.T, b []byte) []byte {
	t.Helper()
	b = bytes.Replace(b, []byte(`"$blob":"`), []byte(`"\u0024bl\u006Fb":`+"\t\""), 1)
	out := bytes.Replace(b, []byte(`"payloads":1,`), nil, 1)
	if bytes.Equal(out, b) {
		t.Fatalf("%s", b)
	}
	return out
}

// redacted is a message file from which the payload was edited away.
func redacted(t *testing.T, b []byte) []byte {
	t.Helper()
	i := bytes.Index(b, []byte(`,"message":{`))
	if i < 0 {
		t.Fatalf("%s", b)
	}
	return append(b[:i:i], `,"message":{"role":"user","content":"redacted"}}`+"\n"...)
}

// editFile changes a message file as an editor does.
func editFile(t *testing.T, c *engine.Context, path string, edit func(*testing.T, []byte) []byte) {
	t.Helper()
	kit.Write(t, path, edit(t, kit.Must[[]byte](t)(os.ReadFile(path))))
	kit.Check(t, c.Refresh(context.Background()))
}

// TestEraseEditedPayload: a payload goes with its message however a hand edited the message file before: spelled
// otherwise, or edited away; and whatever became of the old version and of the blob since.
func TestEraseEditedPayload(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	seal := func(t *testing.T, c *engine.Context, _ string) { kit.Check(t, c.Seal(ctx)) }
	for _, edit := range []struct {
		name string
		do   func(*testing.T, []byte) []byte
	}{{"indented", indented}, {"respelled", respelled}, {"redacted", redacted}} {
		for _, then := range []struct {
			name string
			do   func(t *testing.T, c *engine.Context, dir string)
		}{
			{"nothing", func(*testing.T, *engine.Context, string) {}},
			{"sealed", seal},
			{"archived", func(t *testing.T, c *engine.Context, _ string) {
				kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
			}},
			{"recorded by a repair", func(t *testing.T, c *engine.Context, _ string) {
				kit.Finish(t, checking.Repair(ctx, c.Store, nil, checking.Options{}))
			}},
			{"collected", func(t *testing.T, c *engine.Context, _ string) {
				kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
				for range 2 {
					kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
				}
			}},
		} {
			for _, size := range []int{3000, 200_000} {
				t.Run(edit.name+", "+then.name, func(t *testing.T) {
					c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.WithSealBytes(-1))
					dir := filepath.Dir(folder)
					at := kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(size)})
					kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("kept"))})
					kit.Check(t, c.Seal(ctx))
					editFile(t, c, filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json"), edit.do)
					then.do(t, c, dir)
					kit.Check(t, c.Refresh(ctx))
					m := kit.Load(t, c.Active())[0]
					if edit.name != "redacted" && (m.Unavailable != nil || !strings.Contains(kit.BodyOf(m), kit.Canary)) {
						t.Errorf("before: %v, %.60q", m.Unavailable, kit.BodyOf(m))
					}
					c.PutBlobs() // or the blob comes while trees are compared
					before := kit.Tree(t, dir)
					plan, err := kit.Erase(c.Store, c.ID(), at.ID, erase.Options{DryRun: true})
					if err != nil || kit.Tree(t, dir) != before {
						t.Fatalf("dry run: %v, or something changed", err)
					}
					done := kit.Must[[]erase.Removal](t)(kit.Erase(c.Store, c.ID(), at.ID, erase.Options{}))
					for _, x := range plan {
						if !contains(done, x.Path) {
							t.Errorf("planned and not done: %+v", x)
						}
					}
					if found := kit.FilesWith(t, dir, kit.Canary); len(found) > 0 {
						t.Errorf("the canary is in %v", found)
					}
					kit.Check(t, c.Refresh(ctx))
					if ms := kit.Load(t, c.Active()); len(ms) != 2 || kit.BodyOf(ms[1]) != kit.LargeBody("kept") {
						t.Errorf("the other message: %+v", ms)
					}
				})
			}
		}
	}
}

// TestEraseSparesUnindexed: a payload that no index knows of stays where some file of the store mentions it; nothing is
// known of such a message, and a repair may bring it back.
func TestEraseSparesUnindexed(t *testing.T) {
	ctx := context.Background()
	for name, hide := range map[string]func(t *testing.T, dir, folder, file string){
		"a message that was never committed here": func(t *testing.T, dir, _, file string) {
			folder := filepath.Join(dir, kit.TestID(60000).String(), "messages", "branch-main")
			kit.Write(t, filepath.Join(folder, kit.TestID(1).String()+".json"), kit.Must[[]byte](t)(os.ReadFile(file)))
		},
		"an indented copy under another name": func(t *testing.T, dir, _, file string) {
			kit.Write(t, filepath.Join(dir, "copy.json"), indented(t, kit.Must[[]byte](t)(os.ReadFile(file))))
		},
		"a context whose folder another system named": func(t *testing.T, dir, folder, _ string) {
			kit.Check(t, os.CopyFS(filepath.Join(dir, strings.ToUpper(kit.TestID(60001).String())+"X"), os.DirFS(folder)))
		},
		"a segment of no context": func(t *testing.T, dir, folder, _ string) {
			kit.Check(t, os.CopyFS(filepath.Join(dir, "kept", "segments"), os.DirFS(filepath.Join(folder, "segments"))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := kit.NewStore(t, engine.WithSealBytes(-1))
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
			other := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60001)}))
			kit.Append(t, other.Active(), engine.Draft{ID: kit.TestID(1), Body: []byte(kit.LargeBody("a"))})
			at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("b"))})
			kit.Check(t, other.Seal(ctx))
			folder := filepath.Join(dir, other.ID().String())
			saved := filepath.Join(t.TempDir(), "file")
			kit.Write(t, saved, kit.Must[[]byte](t)(os.ReadFile(filepath.Join(folder, "messages", "branch-main", kit.TestID(1).String()+".json"))))
			kit.Must[archiving.Result](t)(kit.Archive(ctx, other, archiving.Options{}))
			hide(t, dir, folder, saved)
			kit.Check(t, other.Close(), os.RemoveAll(folder))
			kit.Must[[]erase.Removal](t)(kit.Erase(s, c.ID(), at.ID, erase.Options{}))
			if n := len(kit.BlobFiles(t, dir)); n != 1 {
				t.Errorf("%d blobs, wanted the one that is mentioned", n)
			}
			kit.Check(t, c.Close())
		})
	}
}

// TestEraseBlind: where another message cannot be read, the payload of an erased one stays, since that may refer to it,
// and the erase says so, also when the payload was edited away. Of a message that never had any, damage elsewhere is
// none of its business.
func TestEraseBlind(t *testing.T) {
	ctx := context.Background()
	large := kit.Secret(200_000)
	for name, body := range map[string][]byte{"no payload": []byte(`{"n":1}`), "a payload": large, "edited away": large} {
		s, dir := kit.NewStore(t, engine.WithSealBytes(-1))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
		at := kit.Append(t, c.Active(), engine.Draft{Body: body})
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"another":1}`)}) // which is archived
		kit.Check(t, c.Seal(ctx))
		if name == "edited away" {
			editFile(t, c, filepath.Join(dir, c.ID().String(), "messages", "branch-main", at.ID.String()+".json"), redacted)
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
		}
		other := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60001)}))
		kit.Append(t, other.Active(), engine.Draft{ID: kit.TestID(1), Body: []byte(kit.LargeBody("a"))})
		kit.Check(t, other.Seal(ctx), other.Close())
		spoil(t, filepath.Join(dir, other.ID().String()), "segments/*", `{"ctxdir":"message/1"`)
		kit.Write(t, filepath.Join(dir, other.ID().String(), "messages", "branch-main", kit.TestID(1).String()+".json"), nil)
		blobs := len(kit.BlobFiles(t, dir))
		_, err := kit.Erase(s, c.ID(), at.ID, erase.Options{})
		if (err != nil) != (name != "no payload") {
			t.Errorf("%s: %v", name, err)
		}
		kit.Check(t, c.Refresh(ctx))
		if m := kit.Load(t, c.Active())[0]; !errors.Is(m.Unavailable, engine.ErrErased) || len(kit.BlobFiles(t, dir)) != blobs {
			t.Errorf("%s: %v, %d blobs of %d", name, m.Unavailable, len(kit.BlobFiles(t, dir)), blobs)
		}
		kit.Check(t, c.Close())
	}
}

// TestKeepEditedPayload: what a hand did to the spelling of a message costs it no payload, neither in a sweep nor in
// files and backups.
func TestKeepEditedPayload(t *testing.T) {
	ctx := context.Background()
	for name, edit := range map[string]func(*testing.T, []byte) []byte{"indented": indented, "respelled": respelled} {
		for _, then := range []string{"nothing", "archived"} {
			c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.WithSealBytes(-1))
			dir := filepath.Dir(folder)
			at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("a"))})
			kit.Check(t, c.Seal(ctx))
			file := filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json")
			editFile(t, c, file, edit)
			if then == "archived" {
				kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
			}
			for range 2 {
				kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
			}
			kit.Check(t, os.RemoveAll(filepath.Join(dir, "trash")), os.Mkdir(filepath.Join(dir, "trash"), 0o700), c.Refresh(ctx))
			if got := kit.ResolvedBodies(t, c.Active()); len(got) != 1 || !strings.Contains(got[0], "payload") || strings.Contains(got[0], "blob") {
				t.Errorf("%s, %s: %.100q", name, then, got)
			}
			to := kit.Must[*engine.Store](t)(kit.Init(t.TempDir()))
			if done := kit.Must[backup.Result](t)(backup.Copy(ctx, c.Store, c.ID(), to)); done.Missing != 0 {
				t.Errorf("%s, %s: %+v", name, then, done)
			}
			copied := kit.Must[*engine.Context](t)(to.Context(ctx, c.ID()))
			if got := kit.ResolvedBodies(t, copied.Active()); len(got) != 1 || !strings.Contains(got[0], "payload") {
				t.Errorf("%s, %s, backup: %.100q", name, then, got)
			}
			kit.Check(t, copied.Close(), c.Close())
		}
	}
}
