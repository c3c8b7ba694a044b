package replica

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ctxdir/ctxdir"
)

// hello is what both ends of a pipe send first.
const hello = "ctxdir-peer/1\n"

// maxPiece bounds a piece of a request or an answer in a pipe, in bytes.
const maxPiece = 64 << 10

// Pipe is a Caller over a connection, such as standard input and output of ctxtool peer on another machine.
type Pipe struct {
	mu sync.Mutex
	r  *bufio.Reader
	w  *bufio.Writer
	// broken is why no call is possible any more.
	broken error
	greet  bool
}

// NewPipe returns the Caller for the other end of a connection, on which [ServePipe] runs.
func NewPipe(r io.Reader, w io.Writer) *Pipe {
	return &Pipe{r: bufio.NewReaderSize(r, maxPiece), w: bufio.NewWriterSize(w, maxPiece)}
}

// Call implements [Caller]. Calls follow each other: the next one waits until the answer is closed.
func (p *Pipe) Call(ctx context.Context, request io.Reader) (io.ReadCloser, error) {
	p.mu.Lock()
	if err := p.call(ctx, request); err != nil {
		p.broken = err
		p.mu.Unlock()
		return nil, err
	}
	return &pieces{r: p.r, done: func(err error) {
		p.broken = err
		p.mu.Unlock()
	}}, nil
}

func (p *Pipe) call(ctx context.Context, request io.Reader) error {
	if err := firstOf(p.broken, ctx.Err()); err != nil {
		return err
	}
	if !p.greet {
		p.greet = true
		if _, err := p.w.WriteString(hello); err != nil {
			return err
		}
	}
	out := &pieceWriter{w: p.w}
	if _, err := io.CopyBuffer(out, request, make([]byte, maxPiece)); err != nil {
		return err
	}
	return out.close()
}

// expectHello reads what the other end sends first.
func expectHello(r io.Reader) error {
	b := make([]byte, len(hello))
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	if string(b) != hello {
		return fmt.Errorf("%w: %w: it begins with %q", errProtocol, ctxdir.ErrFormat, b)
	}
	return nil
}

// ServePipe answers the calls that come over a connection, until it ends.
func ServePipe(ctx context.Context, f *Folder, l Limits, r io.Reader, w io.Writer) error {
	in, out := bufio.NewReaderSize(r, maxPiece), bufio.NewWriterSize(w, maxPiece)
	limited := l.reader()
	if err := expectHello(in); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	for {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		request, answer := &pieces{r: in}, &pieceWriter{w: out}
		limited.R = request
		if err := serveSome(ctx, f, l, limited, answer); err != nil {
			return err
		}
		// A refused request may not have been read to its end.
		if _, err := io.Copy(io.Discard, request); err != nil {
			return err
		}
		if err := answer.close(); err != nil {
			return err
		}
	}
}

// pieceWriter writes a stream in pieces, each with its length before it; a piece of no bytes ends it.
type pieceWriter struct{ w *bufio.Writer }

func (p *pieceWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		piece := b[:min(len(b), maxPiece)]
		if err = p.length(len(piece)); err == nil {
			_, err = p.w.Write(piece)
		}
		if err == nil {
			n, b = n+len(piece), b[len(piece):]
		}
	}
	return n, err
}

func (p *pieceWriter) length(n int) error {
	_, err := p.w.Write(binary.AppendUvarint(nil, uint64(n))) //nolint:gosec // not negative
	return err
}

func (p *pieceWriter) close() error {
	if err := p.length(0); err != nil {
		return err
	}
	return p.w.Flush()
}

// pieces reads what a pieceWriter wrote.
type pieces struct {
	r    *bufio.Reader
	left uint64
	end  error
	done func(error)
}

func (p *pieces) Read(b []byte) (int, error) {
	for p.end == nil && p.left == 0 {
		n, err := binary.ReadUvarint(p.r)
		switch {
		case err != nil:
			p.end = cut(err)
		case n == 0:
			p.end = io.EOF
		case n > maxPiece:
			p.end = fmt.Errorf("%w: a piece of %d bytes", errProtocol, n)
		}
		p.left = n
	}
	if p.end != nil {
		return 0, p.end
	}
	n, err := p.r.Read(b[:min(uint64(len(b)), p.left)])
	p.left -= uint64(n) //nolint:gosec // not negative
	if err != nil {
		p.end = cut(err)
	}
	return n, p.end
}

// cut is the error of a stream that ended in the middle.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close reads the rest, so that the next answer begins where it should.
func (p *pieces) Close() error {
	_, err := io.Copy(io.Discard, p)
	if p.done != nil {
		p.done(err)
		p.done = nil
	}
	return err
}
