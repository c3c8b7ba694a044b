package engine

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestAttachmentsFillABody: payloads that could not be put back into one body are refused, wherever they come from.
func TestAttachmentsFillABody(t *testing.T) {
	c, _ := newContext(t)
	hold := func() error { return nil }
	text := strings.Repeat("text ", 20)
	for _, test := range []struct {
		room int64
		want error
	}{{105, nil}, {104, ErrTooLarge}, {99, ErrTooLarge}} {
		d := draft{moved: MaxAttached - test.room}
		d.Body, d.Attachments = []byte(`{"a":"","text":"`+text+`"}`), []Attachment{attachment("/a", "12345")}
		if err := c.store.externalise(&d, 100, hold); !errors.Is(err, test.want) {
			t.Errorf("room for %d bytes: %v", test.room, err)
		}
	}
	// A payload in a stream is cut off where there is no more room.
	d := draft{moved: MaxAttached - 1<<20}
	endless := io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), endlessly{}))
	d.Body, d.Attachments = []byte(`{"a":""}`), []Attachment{{At: "/a", Open: func() (io.ReadCloser, error) { return endless, nil }}}
	if err := c.store.externalise(&d, 100, hold); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "1073741824") {
		t.Error(err)
	}
}

// endlessly reads zeros.
type endlessly struct{}

func (endlessly) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
