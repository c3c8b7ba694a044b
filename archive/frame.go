package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/unzstd"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/klauspost/compress/zstd"
)

// Every skippable frame of a segment begins with the magic number and the length of the rest, 4 bytes each, then its kind.
const (
	skipMagic = 0x184D2A50
	zstdMagic = 0xFD2FB528

	kindSegment = "ctxsegm1" // the head of the file
	kindRows    = "ctxrows1" // the rows of the message frame before it
	kindOthers  = "ctxothr1" // records that are no messages
	kindState   = "ctxstat1" // the state of the context after the last record
	kindTables  = "ctxtabl1" // the tables and the footer

	kindSize = 8
	skipHead = 8 + kindSize
	sumSize  = 8
)

// Constants of zstd, see RFC 8878.
const (
	maxBlock = 128 << 10
	// maxFrame is the greatest length of a message frame: its content in uncompressed blocks.
	maxFrame = MaxMessage + MaxMessage/64
	// windowSize is how far back compression looks: over the whole of a common frame.
	windowSize = 2 << 20
	windowByte = (21 - 10) << 3 // a window of 2^21 bytes, in the head of a frame
)

// appendSkip appends the head of a skippable frame with n bytes after its kind.
func appendSkip(b []byte, kind string, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, skipMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(kindSize+n))
	return append(b, kind...)
}

// isSkip reports whether b begins with the head of a skippable frame of this kind that is as long as b.
func isSkip(b []byte, kind string) bool {
	return len(b) >= skipHead && binary.LittleEndian.Uint32(b) == skipMagic &&
		int64(binary.LittleEndian.Uint32(b[4:])) == int64(len(b)-8) && string(b[8:skipHead]) == kind
}

// appendSum appends the sum of b from an offset on.
func appendSum(b []byte, from int) []byte {
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b[from:]))
}

// summed reports whether b ends in the sum of the bytes before it.
func summed(b []byte) bool {
	n := len(b) - sumSize
	return n >= 0 && binary.LittleEndian.Uint64(b[n:]) == xxhash.Sum64(b[:n])
}

// placedSum returns the sum of b and the file offset of its page or frame, which makes it valid only there.
func placedSum(b []byte, at int64) uint64 {
	h := xxhash.New()
	_, _ = h.Write(b)
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(at)))
	return h.Sum64()
}

// placed reports whether a skippable frame at an offset ends in the sum of everything after its length.
func placed(b []byte, at int64) bool {
	n := len(b) - sumSize
	return n >= skipHead && binary.LittleEndian.Uint64(b[n:]) == placedSum(b[8:n], at)
}

// Level says how frames are compressed.
type Level int

// The levels. Store keeps the bytes as they are, for segments that are soon rewritten.
const (
	Store Level = iota
	Fast
	Best
)

// Compressor compresses the frames of several writers, at most as many at the same time as NewCompressor says.
type Compressor struct {
	zstd *zstd.Encoder // nil: it stores
}

// NewCompressor returns a compressor for writers of several goroutines. It holds no goroutine and needs no Close. Each
// frame that is being compressed takes about 2 MiB at the level Fast, and 12 MiB at Best.
func NewCompressor(level Level, atOnce int) *Compressor {
	of := zstd.SpeedFastest
	switch level {
	case Store:
		return &Compressor{}
	case Best:
		of = zstd.SpeedBetterCompression
	}
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(of),
		zstd.WithWindowSize(windowSize),
		zstd.WithEncoderConcurrency(atOnce), // EncodeAll begins no goroutine: a dropped encoder needs no Close
		zstd.WithEncoderCRC(true),           // see proven
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return &Compressor{e}
}

// appendFrame appends content as one frame.
func (c *Compressor) appendFrame(b, content []byte) []byte {
	if c.zstd != nil {
		return c.zstd.EncodeAll(content, b)
	}
	return appendStored(b, content)
}

// appendStored appends content as a frame of uncompressed blocks: see RFC 8878, 3.1.1.
func appendStored(b, content []byte) []byte {
	b = le.AppendUint32(b, zstdMagic)
	if len(content) > windowSize {
		b = append(b, 0x84, windowByte) // a window: decoders refuse one of the whole size; 4 bytes with the size; a checksum
	} else {
		b = append(b, 0xa4) // a single segment: the window is the size; 4 bytes with the size; a checksum
	}
	b = le.AppendUint32(b, uint32(len(content)))
	sum := uint32(xxhash.Sum64(content))
	for {
		n := min(len(content), maxBlock)
		v := uint32(n) << 3
		if n == len(content) {
			v |= 1 // the last block
		}
		b = append(b, byte(v), byte(v>>8), byte(v>>16))
		if b = append(b, content[:n]...); n == len(content) {
			return le.AppendUint32(b, sum)
		}
		content = content[n:]
	}
}

// proven reports whether a frame, of which b has the end at least, ends in the checksum of its content. Without rows,
// nothing else shows that a message is as it was written.
func proven(b, content []byte) bool {
	return len(b) >= 4 && le.Uint32(b[len(b)-4:]) == uint32(xxhash.Sum64(content))
}

// isStored reports whether a frame was appended by appendStored.
func isStored(packed, content int64) bool { return packed > content }

// undeclared is the most that a frame without a declared size may hold: encoders omit the size below 256 bytes.
const undeclared = 255

// decode decodes b, which must be one frame of size bytes. A negative size means the size that the frame declares. The
// content is in the memory of into if that is large enough.
func decode(b []byte, size int64, into []byte) ([]byte, error) {
	h, err := frameHeader(b)
	if err != nil {
		return nil, err
	}
	length, blocks, err := frameLength(bytes.NewReader(b), 0, int64(len(b)), maxFrame, &h)
	if err != nil {
		return nil, err
	}
	room := int64(undeclared)
	if h.HasFCS {
		room = int64(h.FrameContentSize)
	}
	switch {
	case length != int64(len(b)):
		return nil, damaged("a frame of %d bytes fills %d", length, len(b))
	case h.HasFCS && room > int64(blocks)*maxBlock:
		return nil, damaged("a frame of %d blocks declares %d bytes", blocks, room)
	case size >= 0 && (h.HasFCS && room != size || room < size):
		return nil, damaged("a frame of %d bytes, expected %d", room, size)
	}
	// The room was checked against the limit, the blocks present, and the table.
	if int64(cap(into)) < room {
		into = make([]byte, 0, room)
	}
	content, err := unzstd.All(b, into)
	if err != nil {
		return nil, damaged("the frame does not decompress")
	}
	if n := int64(len(content)); size >= 0 && n != size || h.HasFCS && n != room {
		return nil, damaged("a frame of %d bytes differs from its declared size", n)
	}
	return content, nil
}

// frameHeader reads a frame header. It requires no dictionary, and at most the size of a message.
func frameHeader(b []byte) (h zstd.Header, err error) {
	if err := h.Decode(b); err != nil {
		return h, damaged("the frame header is invalid")
	}
	switch {
	case h.Skippable || h.DictionaryID != 0:
		return h, damaged("not a segment frame")
	case h.HasFCS && h.FrameContentSize > MaxMessage+1:
		return h, fmt.Errorf("%w: frame declares %d bytes: %w", ErrDamaged, h.FrameContentSize, vfs.ErrTooLarge)
	}
	return h, nil
}

// frameLength follows the block headers of a frame at off. The frame must end by limit and be no longer than most.
func frameLength(r io.ReaderAt, off, limit, most int64, h *zstd.Header) (length int64, blocks int, err error) {
	at, limit := off+int64(h.HeaderSize), min(limit, off+most)
	for {
		var b [3]byte
		if at+3 > limit {
			return 0, 0, damaged("the frame is truncated")
		}
		if err := readAt(r, b[:], at); err != nil {
			return 0, 0, err
		}
		v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		size := int64(v >> 3)
		if size > maxBlock || v>>1&3 == 3 {
			return 0, 0, damaged("invalid block of %d bytes", size)
		}
		if v>>1&3 == 1 {
			size = 1 // a run of one byte
		}
		at += 3 + size
		blocks++
		if v == 0 { // an empty block: unwritten space reads as many of them
			at += max(vfs.NextData(r, at, limit)-at, 0) / 3 * 3
		}
		if v&1 != 0 {
			break
		}
	}
	if h.HasCheckSum {
		at += 4
	}
	if at > limit {
		return 0, 0, damaged("the frame is truncated")
	}
	return at - off, blocks, nil
}

// readAt fills b. A file that ends early is damaged; any other error is the system's.
func readAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return damaged("the file ends at byte %d", off+int64(n))
	}
	return err
}

var le = binary.LittleEndian
