package blob

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// A blob file begins with a skippable frame, which zstd tools ignore: its magic number, the length of its content, and
// as content the kind with the version, and the size of the payload.
const (
	headerMagic   = 0x184D2A50
	headerKind    = "ctxblob1"
	headerContent = len(headerKind) + 8
	headerSize    = 8 + headerContent
)

func header(size int64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, headerMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(headerContent))
	b = append(b, headerKind...)
	return binary.LittleEndian.AppendUint64(b, uint64(size))
}

// readHeader returns the payload's size. Its error describes the fault of the header. It is io.EOF or
// io.ErrUnexpectedEOF if the file ends within the header.
func readHeader(r io.Reader) (size int64, err error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	if binary.LittleEndian.Uint32(b[:]) != headerMagic ||
		binary.LittleEndian.Uint32(b[4:]) != uint32(headerContent) || string(b[8:8+len(headerKind)]) != headerKind {
		return 0, errNoHeader
	}
	n := binary.LittleEndian.Uint64(b[headerSize-8:])
	if n > math.MaxInt64 {
		return 0, errNoHeader
	}
	return int64(n), nil
}

var errNoHeader = errors.New("invalid blob header")

func headerError(sum Sum, err error) error {
	if isEnd(err) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(sum, "the header is truncated")
	}
	return damaged(sum, "%v", err)
}

// isEnd reports whether a reader's error is io.EOF itself. An error that merely wraps io.EOF is a failure.
func isEnd(err error) bool {
	return err == io.EOF //nolint:errorlint // see above
}
