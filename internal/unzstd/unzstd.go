// Package unzstd decompresses zstd frames that are whole in memory. Packs and small blobs use it.
package unzstd

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest window that a frame may ask for, in bytes. RFC 8878 recommends that every decoder support
// it. It bounds the memory that a hostile file can claim.
const MaxWindow = 8 << 20

// decoders are apart from decoders of streams, which keep the window of their last stream.
var decoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), // no goroutines: a decoder the pool drops needs no Close
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow),
		zstd.WithDecodeAllCapLimit(true), // never exceed the allocated room
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}}

// All returns the content of frames. It fails if they hold more than room bytes, which it allocates at once: the caller
// bounds it by what the file can hold.
func All(frames []byte, room int64) ([]byte, error) {
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	return d.DecodeAll(frames, make([]byte, 0, room))
}
