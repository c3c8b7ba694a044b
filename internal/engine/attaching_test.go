package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

func attachment(at, content string) Attachment {
	return Attachment{At: at, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

// TestAttachmentPlaces: pointers are to the body as it was given, whatever the names in it.
func TestAttachmentPlaces(t *testing.T) {
	ctx := context.Background()
	for _, threshold := range []int64{0, 1, -1} {
		c, _ := newContext(t, WithTextThreshold(threshold))
		for _, test := range []struct{ body, at, want string }{
			{`{"$blob":""}`, "/$blob", `{"$blob":"/wA="}`},
			{`{"$blob":"","$$blob":""}`, "/$$blob", `{"$blob":"","$$blob":"/wA="}`},
			{`{"a":{"$blob":""}, "b":"text"}`, "/a/$blob", `{"a":{"$blob":"/wA="},"b":"text"}`},
		} {
			at := must[Appended](t)(c.Active().Append(ctx, Draft{
				Body: []byte(test.body), Attachments: []Attachment{attachment(test.at, "\xff\x00")},
			}))
			if got := bodyOf(must[*Message](t)(c.Active().Message(ctx, at.ID))); got != test.want {
				t.Errorf("threshold %d, %s: %s, wanted %s", threshold, test.at, got, test.want)
			}
		}
	}
}

// TestAttachmentsRefused: what cannot be put into a message, or not taken out of it again, is refused before
// anything is stored.
func TestAttachmentsRefused(t *testing.T) {
	ctx := context.Background()
	c, folder := newContext(t, WithMaxMessage(100_000))
	first := Draft{Body: []byte(`{"a":""}`), Attachments: []Attachment{attachment("/a", "the lock is there now")}}
	must[Appended](t)(c.Active().Append(ctx, first))
	body := `{"role":"user","content":["",{"$blob":"","$$blob":"x"}],"twice":"","twice":""}`
	long := strings.Repeat("x", 90_000)
	good := attachment("/content/0", long)
	with := func(second Attachment) []Attachment {
		second.At, second.Open = "/content/1/$blob", good.Open
		return []Attachment{good, second}
	}
	refused := func() (io.ReadCloser, error) { return nil, fs.ErrPermission }
	for name, test := range map[string]struct {
		attachments []Attachment
		want        error
		text        string
	}{
		"no such place":        {[]Attachment{good, attachment("/content/7", long)}, ErrInvalid, `"/content/7" leads to no empty string`},
		"no pointer":           {[]Attachment{good, attachment("content/0", long)}, ErrInvalid, "leads to no empty string"},
		"the body itself":      {[]Attachment{good, attachment("", long)}, ErrInvalid, "leads to no empty string"},
		"not empty":            {[]Attachment{good, attachment("/role", long)}, ErrInvalid, `"/role" leads to no empty string`},
		"not empty, escaped":   {[]Attachment{good, attachment("/content/1/$$blob", long)}, ErrInvalid, "leads to no empty string"},
		"a name twice":         {[]Attachment{good, attachment("/twice", long)}, ErrInvalid, `"/twice" leads to 2 strings`},
		"one place for two":    {[]Attachment{good, attachment("/content/0", "other")}, ErrInvalid, "the same pointer"},
		"Open is nil":          {[]Attachment{good, {At: "/content/1/$blob"}}, ErrInvalid, "Open is nil"},
		"prefix not UTF-8":     {with(Attachment{Prefix: "data:\xff,"}), ErrInvalid, "prefix"},
		"media type not UTF-8": {with(Attachment{MediaType: "a/\xed\xa0\x80"}), ErrInvalid, "media type"},
		"prefix too long":      {with(Attachment{Prefix: long + long}), ErrTooLarge, "100000"},
		"cannot open":          {[]Attachment{{At: "/content/0", Open: refused}}, fs.ErrPermission, `"/content/0"`},
	} {
		before := tree(t, filepath.Dir(folder))
		_, err := c.Active().Append(ctx, Draft{Body: []byte(body), Attachments: test.attachments})
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
		if after := tree(t, filepath.Dir(folder)); after != before {
			t.Errorf("%s: the store has changed:\n%s\nwas\n%s", name, after, before)
		}
	}
}
