package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// appendFile appends a message with a text and a file, and harms the file's blob behind its head, where only who
// reads the payload notices. It returns the stored reference.
func appendFile(t *testing.T, c *engine.Context, dir, text string) (*engine.Message, engine.Payload) {
	t.Helper()
	ctx := context.Background()
	file := kit.Attachment("/content/1/$blob", strings.Repeat("file", 50_000))
	file.MediaType = "a/b"
	at := kit.Append(t, c.Active(), engine.Draft{
		Body:        []byte(`{"role":"user","content":[{"text":"` + text + `"},{"$blob":""}]}`),
		Attachments: []engine.Attachment{file},
	})
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))
	for _, ref := range kit.Must[[]engine.Payload](t)(m.Payloads()) {
		if ref.Encoding == "" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(blob.Path(ref.Sum)))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, kit.FlipBit(b), 0o600); err != nil {
			t.Fatal(err)
		}
		return m, ref
	}
	t.Fatal("no file in the message")
	return nil, engine.Payload{}
}

// TestTexts: who only shows a message reads its texts, and no file in it.
func TestTexts(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithTextThreshold(100))
	text := strings.Repeat("long ", 100)
	m, ref := appendFile(t, c, filepath.Dir(folder), text)
	want := `{"role":"user","content":[{"text":"` + text + `"},` +
		`{"$blob":{"$blob":"` + ref.Sum.String() + `","size":200000,"encoding":"base64","media_type":"a/b"}}]}`
	if got, err := m.Texts(ctx); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := m.Body(ctx); !errors.Is(err, blob.ErrDamaged) {
		t.Errorf("the damage is not there: %v", err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(folder), filepath.FromSlash(blob.Path(ref.Sum)))); err != nil {
		t.Fatal(err)
	}
	var gone *engine.UnavailableError
	if _, err := m.Texts(ctx); !errors.As(err, &gone) || gone.Ref.Sum != ref.Sum {
		t.Errorf("a file that is gone: %v", err)
	}
}

// TestExternaliseLeavesFiles: moving a text reads no file, and the file's reference stays byte for byte.
func TestExternaliseLeavesFiles(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithTextThreshold(-1))
	text := strings.Repeat("long ", 100)
	m, ref := appendFile(t, c, filepath.Dir(folder), text)
	inline := string(m.Stored)
	done := kit.Must[archiving.Result](t)(archiving.Externalise(ctx, c, 100, false))
	m = kit.Must[*engine.Message](t)(c.Active().Message(ctx, m.ID))
	want := strings.Replace(inline, `"`+text+`"`, `{"$blob":"`+blob.SumOf([]byte(text)).String()+`","size":500}`, 1)
	if done.Messages != 1 || string(m.Stored) != want {
		t.Errorf("%+v: %s, wanted %s", done, m.Stored, want)
	}
	if refs := kit.Must[[]engine.Payload](t)(m.Payloads()); len(refs) != 2 || refs[1].Sum != ref.Sum || refs[1].MediaType != "a/b" {
		t.Errorf("%+v", refs)
	}
	kit.Must[archiving.Result](t)(archiving.Externalise(ctx, c, -1, false))
	if m = kit.Must[*engine.Message](t)(c.Active().Message(ctx, m.ID)); string(m.Stored) != inline {
		t.Errorf("back: %s, wanted %s", m.Stored, inline)
	}
}

// TestTooLargeForABody: a message whose references stand for more than fits into a body, which nobody here writes, says
// so; its payloads can be had one by one, and it is left as it is.
func TestTooLargeForABody(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithTextThreshold(-1))
	m, ref := appendFile(t, c, filepath.Dir(folder), "text")
	path := filepath.Join(folder, "messages", "branch-main", m.ID.String()+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	huge := strings.Replace(string(raw), `"size":200000`, fmt.Sprintf(`"size":%d`, int64(engine.MaxAttachmentBytes)+1), 1)
	huge = strings.Replace(huge, `"text":"text"`, `"text":["a longer text",{"$blob":"`+ref.Sum.String()+`","size":9223372036854775807}]`, 1)
	if err := os.WriteFile(path, []byte(huge), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	m = kit.Must[*engine.Message](t)(c.Active().Message(ctx, m.ID))
	stays := strings.Replace(string(m.Stored), "$$blob", "$blob", 1)
	if body, err := m.Body(ctx); !errors.Is(err, engine.ErrMemoryLimit) || !errors.Is(err, engine.ErrTooLarge) || string(body) != stays {
		t.Errorf("%s, %v", body, err)
	}
	var streamed strings.Builder
	err = m.WriteBody(ctx, &streamed)
	if !errors.Is(err, engine.ErrTooLarge) || !strings.Contains(err.Error(), "1073741824") || streamed.String() != stays {
		t.Errorf("streamed: %s, %v", &streamed, err)
	}
	if done := kit.Must[archiving.Result](t)(archiving.Externalise(ctx, c, 5, false)); done.Messages != 0 {
		t.Errorf("%+v", done)
	}
}
