package storetest_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestAttachmentPlaces: pointers are to the body as it was given, whatever the names in it.
func TestAttachmentPlaces(t *testing.T) {
	ctx := context.Background()
	for _, threshold := range []int64{0, 1, -1} {
		c, _ := kit.NewContext(t, engine.WithTextThreshold(threshold))
		for _, test := range []struct{ body, at, want string }{
			{`{"$blob":""}`, "/$blob", `{"$blob":"/wA="}`},
			{`{"$blob":"","$$blob":""}`, "/$$blob", `{"$blob":"","$$blob":"/wA="}`},
			{`{"a":{"$blob":""}, "b":"text"}`, "/a/$blob", `{"a":{"$blob":"/wA="},"b":"text"}`},
		} {
			at := kit.Append(t, c.Active(), engine.Draft{
				Body: []byte(test.body), Attachments: []engine.Attachment{kit.Attachment(test.at, "\xff\x00")},
			})
			if got := kit.BodyOf(kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))); got != test.want {
				t.Errorf("threshold %d, %s: %s, wanted %s", threshold, test.at, got, test.want)
			}
		}
	}
}

// TestAttachmentsRefused: what cannot be put into a message, or not taken out of it again, is refused before
// anything is stored.
func TestAttachmentsRefused(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithMaxMessage(100_000))
	first := engine.Draft{Body: []byte(`{"a":""}`), Attachments: []engine.Attachment{kit.Attachment("/a", "the lock is there now")}}
	kit.Append(t, c.Active(), first)
	body := `{"role":"user","content":["",{"$blob":"","$$blob":"x"}],"twice":"","twice":""}`
	long := strings.Repeat("x", 90_000)
	good := kit.Attachment("/content/0", long)
	pair := func(at, content string) []engine.Attachment {
		return []engine.Attachment{good, kit.Attachment(at, content)}
	}
	with := func(second engine.Attachment) []engine.Attachment {
		second.At, second.Open = "/content/1/$blob", good.Open
		return []engine.Attachment{good, second}
	}
	refused := func() (io.ReadCloser, error) { return nil, fs.ErrPermission }
	for name, test := range map[string]struct {
		attachments []engine.Attachment
		want        error
		text        string
	}{
		"no such place":        {pair("/content/7", long), engine.ErrInvalid, `"/content/7" does not point to an empty string`},
		"no pointer":           {pair("content/0", long), engine.ErrInvalid, "does not point to an empty string"},
		"the body itself":      {pair("", long), engine.ErrInvalid, "does not point to an empty string"},
		"not empty":            {pair("/role", long), engine.ErrInvalid, `"/role" does not point to an empty string`},
		"not empty, escaped":   {pair("/content/1/$$blob", long), engine.ErrInvalid, "does not point to an empty string"},
		"a name twice":         {pair("/twice", long), engine.ErrInvalid, `"/twice" matches 2 strings`},
		"one place for two":    {pair("/content/0", "other"), engine.ErrInvalid, "the same pointer"},
		"Open is nil":          {[]engine.Attachment{good, {At: "/content/1/$blob"}}, engine.ErrInvalid, "Open is nil"},
		"prefix not UTF-8":     {with(engine.Attachment{Prefix: "data:\xff,"}), engine.ErrInvalid, "prefix"},
		"media type not UTF-8": {with(engine.Attachment{MediaType: "a/\xed\xa0\x80"}), engine.ErrInvalid, "media type"},
		"prefix too long":      {with(engine.Attachment{Prefix: long + long}), engine.ErrTooLarge, "100000"},
		"cannot open":          {[]engine.Attachment{{At: "/content/0", Open: refused}}, fs.ErrPermission, `"/content/0"`},
	} {
		before := kit.Tree(t, filepath.Dir(folder))
		_, err := c.Active().Append(ctx, engine.Draft{Body: []byte(body), Attachments: test.attachments})
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
		if after := kit.Tree(t, filepath.Dir(folder)); after != before {
			t.Errorf("%s: the store has changed:\n%s\nwas\n%s", name, after, before)
		}
	}
}
