package unzstd_test

import (
	"bytes"
	"testing"

	"github.com/ctxdir/ctxdir/internal/unzstd"
	"github.com/klauspost/compress/zstd"
)

// TestAll: the content returns, frame after frame, and more than the room or the window allows is an error.
func TestAll(t *testing.T) {
	frame := func(content []byte, window int) []byte {
		e, err := zstd.NewWriter(nil, zstd.WithWindowSize(window), zstd.WithSingleSegment(false))
		if err != nil {
			t.Fatal(err)
		}
		return e.EncodeAll(content, nil)
	}
	one, two := bytes.Repeat([]byte("one"), 1000), []byte("two")
	both := append(frame(one, 1<<20), frame(two, 1<<20)...)
	want := append(bytes.Clone(one), two...)
	if got, err := unzstd.All(both, make([]byte, 0, len(want))); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; wanted %d", len(got), err, len(want))
	}
	if _, err := unzstd.All(both, make([]byte, 0, len(want)-1)); err == nil {
		t.Error("decoded more than there is room for")
	}
	large := make([]byte, 4*unzstd.MaxWindow)
	if _, err := unzstd.All(frame(large, unzstd.MaxWindow), make([]byte, 0, len(large))); err != nil {
		t.Error(err)
	}
	if _, err := unzstd.All(frame(large, 2*unzstd.MaxWindow), make([]byte, 0, len(large))); err == nil {
		t.Error("decoded a frame with a larger window")
	}
}
