package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// indented is a message file as jq leaves it.
func indented(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	check(t, json.Indent(&out, b, "", "  "))
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
func editFile(t *testing.T, c *Context, path string, edit func(*testing.T, []byte) []byte) {
	t.Helper()
	write(t, path, edit(t, must[[]byte](t)(os.ReadFile(path))))
	check(t, c.Refresh(context.Background()))
}

// TestEraseEditedPayload: a payload goes with its message however a hand edited the message file before: spelled
// otherwise, or edited away; and whatever became of the old version and of the blob since.
func TestEraseEditedPayload(t *testing.T) {
	ctx := context.Background()
	fold := func(t *testing.T, c *Context, _ string) { check(t, c.Fold(ctx)) }
	for _, edit := range []struct {
		name string
		do   func(*testing.T, []byte) []byte
	}{{"indented", indented}, {"respelled", respelled}, {"redacted", redacted}} {
		for _, then := range []struct {
			name string
			do   func(t *testing.T, c *Context, dir string)
		}{
			{"nothing", func(*testing.T, *Context, string) {}},
			{"folded", fold},
			{"archived", func(t *testing.T, c *Context, _ string) { must[Archived](t)(c.Archive(ctx, ArchiveOptions{})) }},
			{"recorded by a repair", func(t *testing.T, c *Context, _ string) { finish(t, c.store.Repair(ctx, nil, CheckOptions{})) }},
			{"index lost", func(t *testing.T, c *Context, dir string) {
				check(t, c.Fold(ctx))
				for _, pattern := range []string{"index.json", "index", "journal-*"} {
					for _, path := range must[[]string](t)(filepath.Glob(filepath.Join(dir, c.ID().String(), pattern))) {
						check(t, os.RemoveAll(path))
					}
				}
				check(t, c.Refresh(ctx))
				must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
			}},
			{"collected", func(t *testing.T, c *Context, _ string) {
				must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
				for range 2 {
					collect(t, c.store, Collecting{Grace: 0})
				}
			}},
		} {
			for _, size := range []int{3000, 200_000} {
				t.Run(edit.name+", "+then.name, func(t *testing.T) {
					c, folder := newContext(t, WithTextThreshold(1<<10), WithFoldBytes(-1))
					dir := filepath.Dir(folder)
					at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: secret(size)}))
					must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("kept"))}))
					check(t, c.Fold(ctx))
					editFile(t, c, filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json"), edit.do)
					then.do(t, c, dir)
					check(t, c.Refresh(ctx))
					m := must[[]*Message](t)(c.Active().Load(ctx))[0]
					if edit.name != "redacted" && (m.Unavailable != nil || !strings.Contains(bodyOf(m), canary)) {
						t.Errorf("before: %v, %.60q", m.Unavailable, bodyOf(m))
					}
					c.PutBlobs() // or the blob comes while trees are compared
					before := tree(t, dir)
					plan, err := erase(c.store, c.ID(), at.ID, EraseOptions{DryRun: true})
					if err != nil || tree(t, dir) != before {
						t.Fatalf("dry run: %v, or something changed", err)
					}
					done := must[[]Erased](t)(erase(c.store, c.ID(), at.ID, EraseOptions{}))
					for _, x := range plan {
						if !contains(done, x.Path) {
							t.Errorf("planned and not done: %+v", x)
						}
					}
					if found := holding(t, dir, canary); len(found) > 0 {
						t.Errorf("the canary is in %v", found)
					}
					check(t, c.Refresh(ctx))
					if ms := must[[]*Message](t)(c.Active().Load(ctx)); len(ms) != 2 || bodyOf(ms[1]) != largeBody("kept") {
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
			folder := filepath.Join(dir, testID(60000).String(), "messages", "branch-main")
			write(t, filepath.Join(folder, testID(1).String()+".json"), must[[]byte](t)(os.ReadFile(file)))
		},
		"an indented copy under another name": func(t *testing.T, dir, _, file string) {
			write(t, filepath.Join(dir, "copy.json"), indented(t, must[[]byte](t)(os.ReadFile(file))))
		},
		"a context whose folder another system named": func(t *testing.T, dir, folder, _ string) {
			check(t, os.CopyFS(filepath.Join(dir, strings.ToUpper(testID(60001).String())+"X"), os.DirFS(folder)))
		},
		"a pack of no context": func(t *testing.T, dir, folder, _ string) {
			check(t, os.CopyFS(filepath.Join(dir, "kept", "archive"), os.DirFS(filepath.Join(folder, "archive"))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newStore(t, WithFoldBytes(-1))
			c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
			other := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60001)}))
			must[Appended](t)(other.Active().Append(ctx, Draft{ID: testID(1), Body: []byte(largeBody("a"))}))
			at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("b"))}))
			check(t, other.Fold(ctx))
			folder := filepath.Join(dir, other.ID().String())
			saved := filepath.Join(t.TempDir(), "file")
			write(t, saved, must[[]byte](t)(os.ReadFile(filepath.Join(folder, "messages", "branch-main", testID(1).String()+".json"))))
			must[Archived](t)(other.Archive(ctx, ArchiveOptions{}))
			hide(t, dir, folder, saved)
			check(t, other.Close(), os.RemoveAll(folder))
			must[[]Erased](t)(erase(s, c.ID(), at.ID, EraseOptions{}))
			if n := len(blobFiles(t, dir)); n != 1 {
				t.Errorf("%d blobs, wanted the one that is mentioned", n)
			}
			check(t, c.Close())
		})
	}
}

// TestEraseBlind: where another message cannot be read, the payload of an erased one stays, since that may refer to it,
// and the erase says so, also when the payload was edited away. Of a message that never had any, damage elsewhere is
// none of its business.
func TestEraseBlind(t *testing.T) {
	ctx := context.Background()
	for name, body := range map[string][]byte{"no payload": []byte(`{"n":1}`), "a payload": secret(200_000), "edited away": secret(200_000)} {
		s, dir := newStore(t, WithFoldBytes(-1))
		c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
		at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: body}))
		must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"another":1}`)})) // which is archived
		check(t, c.Fold(ctx))
		if name == "edited away" {
			editFile(t, c, filepath.Join(dir, c.ID().String(), "messages", "branch-main", at.ID.String()+".json"), redacted)
			must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
		}
		other := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60001)}))
		must[Appended](t)(other.Active().Append(ctx, Draft{ID: testID(1), Body: []byte(largeBody("a"))}))
		check(t, other.Fold(ctx), other.Close())
		for _, j := range must[[]string](t)(filepath.Glob(filepath.Join(dir, other.ID().String(), "journal-1*"))) {
			check(t, os.Remove(j))
		}
		write(t, filepath.Join(dir, other.ID().String(), "messages", "branch-main", testID(1).String()+".json"), nil)
		blobs := len(blobFiles(t, dir))
		_, err := erase(s, c.ID(), at.ID, EraseOptions{})
		if (err != nil) != (name != "no payload") {
			t.Errorf("%s: %v", name, err)
		}
		check(t, c.Refresh(ctx))
		if m := must[[]*Message](t)(c.Active().Load(ctx))[0]; !errors.Is(m.Unavailable, ErrErased) || len(blobFiles(t, dir)) != blobs {
			t.Errorf("%s: %v, %d blobs of %d", name, m.Unavailable, len(blobFiles(t, dir)), blobs)
		}
		check(t, c.Close())
	}
}

// TestKeepEditedPayload: what a hand did to the spelling of a message costs it no payload, neither in a sweep nor in files and backups.
func TestKeepEditedPayload(t *testing.T) {
	ctx := context.Background()
	for name, edit := range map[string]func(*testing.T, []byte) []byte{"indented": indented, "respelled": respelled} {
		for _, then := range []string{"nothing", "rebuilt", "archived"} {
			c, folder := newContext(t, WithTextThreshold(1<<10), WithFoldBytes(-1))
			dir := filepath.Dir(folder)
			at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("a"))}))
			check(t, c.Fold(ctx))
			file := filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json")
			committed := must[os.FileInfo](t)(os.Stat(file)).ModTime()
			editFile(t, c, file, edit)
			if then != "nothing" { // an index that is made anew takes the edit for what was committed
				check(t, os.Chtimes(file, committed, committed), c.Close(),
					os.RemoveAll(filepath.Join(folder, "index")), os.Remove(filepath.Join(folder, "index.json")))
				for _, j := range must[[]string](t)(filepath.Glob(filepath.Join(folder, "journal-*"))) {
					check(t, os.Remove(j))
				}
				c = must[*Context](t)(c.store.Context(ctx, c.ID()))
			}
			if then == "archived" {
				done := must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
				if done.Messages+done.Stayed != 1 || done.Stayed == 1 && name != "indented" {
					t.Fatalf("%s: %+v", name, done) // what takes several lines stays a file
				}
			}
			for range 2 {
				collect(t, c.store, Collecting{Grace: 0})
			}
			check(t, os.RemoveAll(filepath.Join(dir, "trash")), os.Mkdir(filepath.Join(dir, "trash"), 0o700), c.Refresh(ctx))
			if got := resolvedBodies(t, c.Active()); len(got) != 1 || !strings.Contains(got[0], "payload") || strings.Contains(got[0], "blob") {
				t.Errorf("%s, %s: %.100q", name, then, got)
			}
			to := must[*Store](t)(Init(t.TempDir()))
			if done := must[BackedUp](t)(c.store.Backup(ctx, c.ID(), to)); done.Missing != 0 {
				t.Errorf("%s, %s: %+v", name, then, done)
			}
			copied := must[*Context](t)(to.Context(ctx, c.ID()))
			if got := resolvedBodies(t, copied.Active()); len(got) != 1 || !strings.Contains(got[0], "payload") {
				t.Errorf("%s, %s, backup: %.100q", name, then, got)
			}
			check(t, copied.Close(), c.Close())
		}
	}
}
