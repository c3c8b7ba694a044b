package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// blobFiles returns the paths of the blobs in a store.
func blobFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return paths
}

func picture(seed byte, size int) string {
	b := bytes.Repeat([]byte{0x89, 'P', 'N', 'G', seed, 0}, size/6)
	return base64.StdEncoding.EncodeToString(b)
}

// samples are bodies of every sort.
func samples() []string {
	long := strings.Repeat("a line of text, \\\"quoted\\\"\\n", 400)
	return []string{
		`{"role":"user","content":"short"}`,
		`{"role":"tool","content":"` + long + `"}`,
		`{"role":"tool","content":"` + strings.Repeat("\\u00fc\\ud83d\\ude00 ", 500) + `"}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture(1, 3000) + `"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture(2, 200_000) + `"}}]}`,
		`{"$blob":"` + strings.Repeat("0", 64) + `","size":1,"n":1.0e400}`,
		`{"a":{"$blob":1},"b":[{"$$blob":"x"}],"text":"` + long + `"}`,
		`{"text":"` + strings.Repeat("x", 300_000) + `"}`,
	}
}

// TestBodiesComeBack: whatever the threshold, before a fold and after, from a new handle, each body is what came in.
func TestBodiesComeBack(t *testing.T) {
	ctx := context.Background()
	for _, threshold := range []int64{0, 1, 1024, 100_000, -1} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			dir := t.TempDir()
			s := must[*Store](t)(Init(dir, WithTextThreshold(threshold)))
			c := must[*Context](t)(s.Create(ctx, Metadata{}))
			bodies := samples()
			var drafts []Draft
			for _, b := range bodies[1:] {
				drafts = append(drafts, Draft{Body: []byte(b)})
			}
			must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(bodies[0])}))
			must[[]Result](t)(c.Active().AppendBatch(ctx, drafts))
			compare := func(stage string, c *Context) {
				t.Helper()
				ms := must[[]*Message](t)(c.Active().Load(ctx))
				all, err := ResolveAll(ctx, ms)
				if err != nil || len(ms) != len(bodies) {
					t.Fatalf("%s: %d messages, %v", stage, len(ms), err)
				}
				for i, m := range ms {
					if bodyOf(m) != bodies[i] || string(all[i]) != bodies[i] {
						t.Errorf("%s: body %d is %.100s, wanted %.100s", stage, i, bodyOf(m), bodies[i])
					}
				}
			}
			compare("as appended", c)
			other := must[*Context](t)(must[*Store](t)(Open(dir)).Context(ctx, c.ID()))
			compare("from a new handle", other)
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.Fold(ctx); err != nil {
				t.Fatal(err)
			}
			compare("folded", c)
			// Nothing but message files and blobs is left.
			names, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "journal-*"))
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			for _, n := range append(names, filepath.Join(dir, c.ID().String(), "index.json")) {
				if err := os.Remove(n); err != nil {
					t.Fatal(err)
				}
			}
			again := must[*Context](t)(must[*Store](t)(Open(dir)).Context(ctx, c.ID()))
			compare("rebuilt", again)
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			if threshold < 0 && len(blobFiles(t, dir)) != 2 {
				t.Errorf("%d blobs, wanted the two pictures", len(blobFiles(t, dir)))
			}
		})
	}
}

// TestOnePayloadOneBlob: a picture in 200 messages, and an answer that six forks got, are stored once.
func TestOnePayloadOneBlob(t *testing.T) {
	ctx := context.Background()
	c, folder := newContext(t, WithTextThreshold(1<<10))
	dir := filepath.Dir(folder)
	img := `{"role":"user","content":[` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture(3, 20_000) + `"}},` +
		`{"type":"text","text":"%d"}]}`
	for i := range 200 {
		must[Appended](t)(c.Active().Append(ctx, Draft{Body: fmt.Appendf(nil, img, i)}))
	}
	answer := `{"role":"assistant","content":"` + strings.Repeat("because ", 1000) + `"}`
	for i := range 6 {
		b := must[*Branch](t)(c.Active().Fork(ctx, fmt.Sprint("fork", i), 10))
		must[Appended](t)(b.Append(ctx, Draft{Body: []byte(answer)}))
	}
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if paths := blobFiles(t, dir); len(paths) != 2 {
		t.Errorf("%d blobs, wanted 2", len(paths))
	}
	ms := must[[]*Message](t)(c.Active().Range(ctx, 150, 151))
	refs, err := ms[0].Payloads()
	if err != nil || len(refs) != 1 || refs[0].MediaType != "image/png" || refs[0].Size != 19998 || refs[0].Path != "/content/0/source/data" {
		t.Errorf("payloads %+v, %v", refs, err)
	}
	r, size, err := ms[0].Open(refs[0])
	if err != nil || size != 19998 {
		t.Fatal(size, err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || len(b) != 19998 || b[4] != 3 {
		t.Errorf("the picture is %d bytes, %v", len(b), err)
	}
}

// TestMissingBlob: a blob that is gone or damaged costs its payload, and nothing else.
func TestMissingBlob(t *testing.T) {
	ctx := context.Background()
	for name, spoil := range map[string]func(path string) error{
		"gone":    os.Remove,
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"flipped": func(path string) error { return flip(path, 30) },
	} {
		t.Run(name, func(t *testing.T) {
			c, folder := newContext(t, WithTextThreshold(1<<10))
			dir := filepath.Dir(folder)
			first := `{"role":"tool","content":"` + strings.Repeat("abcdefg ", 1000) + `","keep":"me"}`
			second := `{"role":"tool","content":"` + strings.Repeat("hijklmn ", 1000) + `"}`
			must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(first)}))
			if err := c.Fold(ctx); err != nil {
				t.Fatal(err)
			}
			paths := blobFiles(t, dir)
			must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(second)}))
			if err := errors.Join(c.Fold(ctx), spoil(paths[0])); err != nil {
				t.Fatal(err)
			}
			fresh := must[*Context](t)(must[*Store](t)(Open(dir)).Context(ctx, c.ID()))
			defer fresh.Close()
			ms := must[[]*Message](t)(fresh.Active().Load(ctx))
			body, err := ms[0].Body(ctx)
			var u *UnavailableError
			if !errors.As(err, &u) || u.Ref.Size != 8000 || !strings.Contains(string(body), `"keep":"me"`) || ms[0].Unavailable != nil {
				t.Errorf("body %.80s, %v", body, err)
			}
			if bodyOf(ms[1]) != second {
				t.Errorf("the other message: %.80s", bodyOf(ms[1]))
			}
			// Appending the payload again heals it.
			must[Appended](t)(c.Active().Append(ctx, Draft{ID: uuid.New(), Body: []byte(first)}))
			if err := c.Fold(ctx); err != nil {
				t.Fatal(err)
			}
			if got := bodyOf(must[[]*Message](t)(fresh.Active().Load(ctx))[0]); got != first {
				t.Errorf("after the payload came again: %.80s", got)
			}
		})
	}
}

func flip(path string, at int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[at] ^= 0x40
	return os.WriteFile(path, b, 0o600)
}

// TestEditedReference: a string put back by hand in the place of its reference is valid, and the next write of the message
// moves it again.
func TestEditedReference(t *testing.T) {
	ctx := context.Background()
	c, folder := newContext(t, WithTextThreshold(1<<10))
	text := strings.Repeat("something long ", 200)
	body := `{"role":"tool","content":"` + text + `","n":1}`
	at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(body)}))
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	m := must[*Message](t)(c.Active().Message(ctx, at.ID))
	edited := strings.Replace(body, `"n":1`, `"n":2`, 1)
	path := filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, m.Stored, []byte(edited), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	m = must[*Message](t)(c.Active().Message(ctx, at.ID))
	if refs, err := m.Payloads(); !m.Edited || bodyOf(m) != edited || err != nil || len(refs) != 0 {
		t.Fatalf("edited %v, %d payloads, %v, %.100s", m.Edited, len(refs), err, bodyOf(m))
	}
	if err := c.Active().Replace(ctx, at.ID, Draft{Body: []byte(bodyOf(m))}); err != nil {
		t.Fatal(err)
	}
	m = must[*Message](t)(c.Active().Message(ctx, at.ID))
	if refs, err := m.Payloads(); m.Edited || bodyOf(m) != edited || err != nil || len(refs) != 1 {
		t.Errorf("after the next write: edited %v, %d payloads, %v, %.100s", m.Edited, len(refs), err, bodyOf(m))
	}
}

// TestAttachments: a file becomes a payload in its place without passing through memory, retried or not.
func TestAttachments(t *testing.T) {
	ctx := context.Background()
	for _, threshold := range []int64{0, -1} {
		c, _ := newContext(t, WithTextThreshold(threshold))
		content := bytes.Repeat([]byte("\x00\xff attached "), 100_000)
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		d := Draft{
			ID: uuid.New(), Body: []byte(`{"role":"user","content":[{"text":""},{"data":""}]}`),
			Attachments: []Attachment{{At: "/content/1/data", MediaType: "application/x", Open: open}},
		}
		want := `{"role":"user","content":[{"text":""},{"data":"` + base64.StdEncoding.EncodeToString(content) + `"}]}`
		at := must[Appended](t)(c.Active().Append(ctx, d))
		again := must[Appended](t)(c.Active().Append(ctx, d))
		m := must[*Message](t)(c.Active().Message(ctx, at.ID))
		refs, err := m.Payloads()
		if err != nil || bodyOf(m) != want || !again.Existed || len(m.Stored) > 2000 || refs[len(refs)-1].MediaType != "application/x" {
			t.Errorf("threshold %d: %v, existed %v, %d bytes stored, %.100s", threshold, err, again.Existed, len(m.Stored), bodyOf(m))
		}
	}
}

// TestReadOnlyMakesNoBlob: in a store that is open for reading nothing is changed, a blob included.
func TestReadOnlyMakesNoBlob(t *testing.T) {
	ctx := context.Background()
	c, folder := newContext(t)
	at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"n":1}`)}))
	dir := filepath.Dir(folder)
	before := tree(t, dir)
	s := must[*Store](t)(Open(dir, ReadOnly()))
	r := must[*Context](t)(s.Context(ctx, c.ID()))
	defer r.Close()
	large := Draft{Body: []byte(largeBody("r"))}
	_, appending := r.Active().Append(ctx, large)
	_, externalising := r.Externalise(ctx, 0, false)
	replacing := r.Active().Replace(ctx, at.ID, large)
	for what, err := range map[string]error{"append": appending, "replace": replacing, "externalise": externalising} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the store has changed:\n%s\nwas\n%s", after, before)
	}
}

// TestLongEdit: a file of more than a MiB that was made longer by hand is an edit too: it is served and stays.
func TestLongEdit(t *testing.T) {
	ctx := context.Background()
	c, folder := newContext(t, WithTextThreshold(-1))
	at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"text":"` + strings.Repeat("long ", 400_000) + `"}`)}))
	path := filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, []byte("long long"), []byte("by hand, and longer"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"edited", "folded"} {
		if err := c.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		m := must[*Message](t)(c.Active().Message(ctx, at.ID))
		if m.Unavailable != nil || !m.Edited || !strings.Contains(bodyOf(m), "by hand") {
			t.Errorf("%s: unavailable %v, edited %v", stage, m.Unavailable, m.Edited)
		}
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
