package blob

import (
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// blockSize is the most that a zstd block holds. A larger payload is written as a stream.
	blockSize = 128 << 10
	// windowSize is how far back compression looks, and so how much a reader must keep. A larger window would gain a
	// tenth on payloads of many megabytes, and cost every writer the memory.
	windowSize = 256 << 10
)

// The level is measured: see docs/DESIGN.md, "Compression of blobs". A block that does not shrink is stored as it is.
var encoderOptions = []zstd.EOption{
	zstd.WithEncoderLevel(zstd.SpeedFastest),
	zstd.WithWindowSize(windowSize),
	zstd.WithEncoderConcurrency(1), // no goroutines: an encoder the pool drops needs no Close
	zstd.WithLowerEncoderMem(true),
	zstd.WithZeroFrames(true), // an empty payload has a frame too
}

// An encoder holds about 1.4 MiB of tables. Payloads in memory and streams have separate pools, since each use makes
// its own tables.
var (
	wholeEncoders  = sync.Pool{New: newEncoder}
	streamEncoders = sync.Pool{New: newEncoder}
)

func newEncoder() any {
	e, err := zstd.NewWriter(nil, encoderOptions...)
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

// appendFrame appends a payload as a zstd frame.
func appendFrame(b, payload []byte) []byte {
	e := wholeEncoders.Get().(*zstd.Encoder)
	defer wholeEncoders.Put(e)
	return e.EncodeAll(payload, b)
}

// writeFrame writes a payload as a zstd frame, in bounded memory.
func writeFrame(w io.Writer, payload io.Reader) error {
	e := streamEncoders.Get().(*zstd.Encoder)
	defer func() {
		e.Reset(nil)
		streamEncoders.Put(e)
	}()
	e.Reset(w)
	if _, err := e.ReadFrom(payload); err != nil {
		return err
	}
	return e.Close()
}
