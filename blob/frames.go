package blob

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// blockSize is the most that a zstd block holds. The first block of a payload decides how it is stored.
	blockSize = 128 << 10
	// windowSize is how far back compression looks, and so how much a reader must keep. A larger window would gain a
	// tenth on payloads of many megabytes, and cost every writer the memory.
	windowSize = 256 << 10
)

// The level is measured: see docs/DESIGN.md, "Compression of blobs".
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

// writeFrames writes a payload as zstd frames. head is the whole payload if rest is nil, else its first block.
func writeFrames(w io.Writer, head []byte, rest io.Reader) error {
	if rest == nil && len(head) <= blockSize {
		_, err := w.Write(appendFrames(nil, head))
		return err
	}
	if isMedia(head) && !shrinks(head[:min(len(head), blockSize)]) {
		return writeRaw(w, head, rest)
	}
	e := streamEncoders.Get().(*zstd.Encoder)
	defer func() {
		e.Reset(nil)
		streamEncoders.Put(e)
	}()
	e.Reset(w)
	if _, err := e.Write(head); err != nil {
		return err
	}
	if rest != nil {
		if _, err := io.CopyBuffer(e, struct{ io.Reader }{rest}, make([]byte, blockSize)); err != nil {
			return err
		}
	}
	return e.Close()
}

// appendFrames appends a payload of at most a block.
func appendFrames(b, payload []byte) []byte {
	compressed := compress(b, payload)
	if isMedia(payload) && !gains(len(payload), len(compressed)-len(b)) {
		b = appendRawHeader(b)
		return append(appendRawBlock(b, len(payload), true), payload...)
	}
	return compressed
}

func compress(b, payload []byte) []byte {
	e := wholeEncoders.Get().(*zstd.Encoder)
	defer wholeEncoders.Put(e)
	return e.EncodeAll(payload, b)
}

func shrinks(block []byte) bool { return gains(len(block), len(compress(nil, block))) }

// gains reports whether compression saves a sixteenth. Less is not worth the decoding.
func gains(from, to int) bool { return to < from-from/16 }

// Compressed media is stored as raw blocks, which the functions below write. They cost three bytes per 128 KiB, and
// reading them is a copy. The encoder would first search each block in vain.

func appendRawHeader(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, 0xFD2FB528)
	// No checksum, no content size, no dictionary; a window of 2^(10+7) bytes, a block.
	return append(b, 0, 7<<3)
}

func appendRawBlock(b []byte, size int, last bool) []byte {
	h := uint32(size) << 3 // bits 1 and 2, the type, are 0: raw
	if last {
		h |= 1
	}
	return append(b, byte(h), byte(h>>8), byte(h>>16))
}

func writeRaw(w io.Writer, head []byte, rest io.Reader) error {
	if _, err := w.Write(appendRawHeader(nil)); err != nil {
		return err
	}
	for len(head) > 0 {
		n := min(len(head), blockSize)
		if err := writeRawBlock(w, head[:n], false); err != nil {
			return err
		}
		head = head[n:]
	}
	if rest != nil {
		block := make([]byte, blockSize)
		for {
			n, err := fill(rest, block)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			if err := writeRawBlock(w, block[:n], false); err != nil {
				return err
			}
		}
	}
	return writeRawBlock(w, nil, true)
}

func writeRawBlock(w io.Writer, block []byte, last bool) error {
	if _, err := w.Write(appendRawBlock(nil, len(block), last)); err != nil {
		return err
	}
	_, err := w.Write(block)
	return err
}
