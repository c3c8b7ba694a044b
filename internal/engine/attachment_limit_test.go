package engine_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestAttachmentsFillABody: payloads that could not be put back into one body are refused, wherever they come from.
func TestAttachmentsFillABody(t *testing.T) {
	c, _ := kit.NewContext(t)
	text := strings.Repeat("text ", 20)
	for _, test := range []struct {
		room int64
		want error
	}{{105, nil}, {104, engine.ErrTooLarge}, {99, engine.ErrTooLarge}} {
		d := engine.Draft{Body: []byte(`{"a":"","text":"` + text + `"}`), Attachments: []engine.Attachment{kit.Attachment("/a", "12345")}}
		if err := c.Store.ExternaliseAbove(engine.NewPending(d, test.room), 100); !errors.Is(err, test.want) {
			t.Errorf("room for %d bytes: %v", test.room, err)
		}
	}
	// A payload in a stream is cut off where there is no more room.
	endless := io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), endlessReader{}))
	d := engine.Draft{Body: []byte(`{"a":""}`)}
	d.Attachments = []engine.Attachment{{At: "/a", Open: func() (io.ReadCloser, error) { return endless, nil }}}
	err := c.Store.ExternaliseAbove(engine.NewPending(d, 1<<20), 100)
	if !errors.Is(err, engine.ErrTooLarge) || !strings.Contains(err.Error(), "1073741824") {
		t.Error(err)
	}
}

// endlessReader reads zeros.
type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
