package archive

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"

	"github.com/ctxdir/ctxdir/internal/unzstd"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/klauspost/compress/zstd"
)

// This file reads packs that other programs changed. When zstd recompresses a decompressed pack, only the messages
// remain, in one frame that is as long as all of them. Other data may precede a pack.

// offsetFile is a file without the data that precedes the pack.
type offsetFile struct {
	vfs.File
	from int64
}

func (f *offsetFile) ReadAt(b []byte, off int64) (int, error) { return f.File.ReadAt(b, f.from+off) }

// behind returns the pack after preceding data, and its size, as the footer states. Other files stay unchanged.
func behind(f vfs.File, size int64) (vfs.File, int64, error) {
	if size < footerSize {
		return f, size, nil
	}
	b := make([]byte, footerSize)
	if err := readAt(f, b, size-footerSize); err != nil {
		return nil, 0, err
	}
	stated := int64(binary.LittleEndian.Uint64(b[5*8:]))
	if foot, err := parseFooter(b, stated); err != nil || foot.size >= size {
		return f, size, nil //nolint:nilerr // a bad footer counts as none
	}
	head := appendSkip(nil, kindPack, 0)
	if err := readAt(f, b[:len(head)], 0); err != nil || bytes.Equal(b[:len(head)], head) {
		return f, size, err // this is the end of another pack
	}
	return &offsetFile{f, size - stated}, stated, nil
}

// openDamaged opens the file of a pack that may be damaged in any way.
func openDamaged(fsys vfs.FS, name string) (vfs.File, int64, error) {
	opened, size, err := openFile(fsys, name)
	if err != nil {
		return nil, 0, err
	}
	f, size, err := behind(opened, size)
	if err != nil {
		_ = opened.Close()
	}
	return f, size, err
}

// maxStrangers is how many lines without a message a frame may hold, beyond the number of its messages.
const maxStrangers = 1000

// foreign reads a frame that no [Writer] wrote and reports its messages, some at a time. It reads the frame twice: no
// message counts before the frame's checksum proves right. length is 0 if the frame is damaged.
func (s *scanner) foreign(at int64, h *zstd.Header) (length int64, err error) {
	length, _, err = frameLength(s.file, at, s.size, s.size, h)
	if err == nil {
		err = s.lineByLine(at, length, func([]byte, []Row) {})
	}
	if err == nil {
		err = s.lineByLine(at, length, func(content []byte, rows []Row) {
			s.found(&piece{rows: rows, content: content, foreign: true})
		})
	}
	if isDamage(err) {
		return 0, nil
	}
	return length, err
}

// errorReader is a reader that keeps its error, since the decoder that reads from it may hide it.
type errorReader struct {
	io.Reader
	err error
}

func (r *errorReader) Read(b []byte) (n int, err error) {
	if n, err = r.Reader.Read(b); err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// lineByLine decodes a frame and yields its lines with their rows, no more at once than a [Writer] puts into a frame.
func (s *scanner) lineByLine(at, length int64, yield func(content []byte, rows []Row)) error {
	r := &errorReader{Reader: io.NewSectionReader(s.file, at, length)}
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(unzstd.MaxWindow))
	if err != nil {
		return damaged("frame: %v", err)
	}
	defer d.Close()
	good, bad := 0, 0
	var rest []byte
	end := 0 // of the complete lines in rest
	b := make([]byte, maxBlock)
	for ended := false; !ended && !s.stopped; {
		n, err := io.ReadFull(d, b)
		ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return cmp.Or(r.err, damaged("frame: %v", err))
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			end = len(rest) + i + 1
		}
		rest = append(rest, b[:n]...)
		if len(rest)-end > MaxMessage {
			return damaged("a line of more than %d bytes", MaxMessage)
		}
		if len(rest) < FrameSize-maxBlock && len(rest)-end < maxBlock && !ended {
			continue
		}
		for lines := rest[:end]; len(lines) > 0; {
			piece := lines
			if len(piece) > FrameSize { // take whole lines up to FrameSize, or one longer line
				cut := bytes.LastIndexByte(piece[:FrameSize], '\n') + 1
				if cut == 0 {
					cut = bytes.IndexByte(piece, '\n') + 1
				}
				piece = piece[:cut]
			}
			rows := linesOf(piece, 0)
			good += len(rows)
			if bad += bytes.Count(piece, []byte{'\n'}) - len(rows); bad > good+maxStrangers {
				return damaged("%d lines that hold no message", bad)
			}
			yield(piece[:len(piece):len(piece)], rows)
			lines = lines[len(piece):]
		}
		rest, end = bytes.Clone(rest[end:]), 0
	}
	return nil
}
