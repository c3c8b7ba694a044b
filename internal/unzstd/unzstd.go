// Package unzstd decompresses zstd frames that are whole in memory. Segments and small blobs use it.
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
		zstd.IgnoreChecksum(true),        // one damaged byte would cost the whole frame; callers have sums of the parts
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}}

// All returns the content of frames, in the memory of room. It fails if they hold more than the capacity of room: the
// caller bounds it by what the file can hold.
func All(frames, room []byte) ([]byte, error) {
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	return d.DecodeAll(frames, room[:0])
}
