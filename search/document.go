package search

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/outline"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
)

// maxText bounds the text of one message that is searched, in bytes.
const maxText = 16 << 20

// document is what the index holds of a message.
type document struct {
	position   int64
	id         uuid.UUID
	sum        int64 // of the version
	role, kind string
	at         int64 // the message's own time, or that of its commit, nanoseconds since 1970
	edited     bool
	failed     bool // the message is not available
	voice      voice
	text       int64 // sum of all words
	usage      []byte
	note       outline.Note
	said, rest string
	saidStems  string
	restStems  string
	files      []fileMention
}

// newDocument cuts a message into terms.
func newDocument(ctx context.Context, m *ctxdir.Message, c *cutter) *document {
	d := &document{
		position: m.Position, id: m.ID, sum: sumOf(m.ID, m.StoredAt), role: m.Role, kind: m.Type, edited: m.Edited, failed: m.Unavailable != nil,
	}
	if d.failed {
		return d
	}
	at := m.CreatedAt
	if at.IsZero() {
		at = m.StoredAt
	}
	d.at, d.usage = at.UnixNano(), digestion(ctx, m)
	c.reset()
	body := textsOf(ctx, m)
	var said map[string]bool
	parts := transcript.Parts(body)
	d.voice, said = speech(m.Role, body, parts)
	if m.Role == "user" && said == nil && slices.ContainsFunc(parts, isResult) {
		d.role = "tool" // some APIs take what a tool answered as if a person handed it in
	}
	d.note = outline.Of(m.Role, body, parts)
	d.files = eachSearchedIn(m, body, isText, func(t text) bool {
		c.add(inner(t.value), said[t.value])
		return true
	})
	d.said, d.rest, d.saidStems, d.restStems = string(c.said.words), string(c.rest.words), string(c.said.stems), string(c.rest.stems)
	sum := xxhash.New()
	_, _ = sum.WriteString(d.said)
	_, _ = sum.WriteString(textBreak)
	_, _ = sum.WriteString(d.rest)
	d.text = int64(sum.Sum64())
	return d
}

func isResult(p transcript.Part) bool { return p.Kind == transcript.Result }

// eachSearched yields the strings of a message that want accepts, each once, and then the texts of the files that it
// attaches.
func eachSearched(ctx context.Context, m *ctxdir.Message, want func(name, value string) bool, yield func(t text) bool) {
	eachSearchedIn(m, textsOf(ctx, m), want, yield)
}

// eachSearchedIn is eachSearched for a message with its texts. It returns the files that the message touches.
func eachSearchedIn(m *ctxdir.Message, body json.RawMessage, want func(name, value string) bool, yield func(t text) bool) []fileMention {
	hints, more, size := false, true, 0
	look := func(name, value string) bool {
		hints = hints || hintsAtFile(name, value)
		return want(name, value)
	}
	eachDistinct(body, look, func(t text) bool {
		size += len(t.value)
		more = yield(t)
		return more
	})
	refs := binaryRefs(m)
	if !more || !hints && len(refs) == 0 {
		return nil
	}
	w := &fileWalk{refs: refs}
	w.payload = func(p *ctxdir.Payload) ([]byte, bool) {
		if p.Size > int64(maxText-size) {
			return nil, false
		}
		r, size, err := m.Open(*p)
		if err != nil {
			return nil, false
		}
		b := make([]byte, min(size, p.Size))
		_, err = io.ReadFull(r, b)
		return b, errors.Join(err, r.Close()) == nil
	}
	w.text = func(pointer, content string) bool {
		if size += len(content); more && size <= maxText {
			more = yield(text{pointer, content})
		}
		return more
	}
	_ = w.walk(body, "")
	return w.mentions
}

// binaryRefs returns the payloads of a message that are not text, by pointer.
func binaryRefs(m *ctxdir.Message) map[string]*ctxdir.Payload {
	all, err := m.Payloads()
	if err != nil {
		return nil
	}
	var refs map[string]*ctxdir.Payload
	for i := range all {
		if p := &all[i]; p.Binary && p.Pointer != "" && p.Problem == "" {
			if refs == nil {
				refs = map[string]*ctxdir.Payload{}
			}
			refs[p.Pointer] = p
		}
	}
	return refs
}

// textsOf returns a message with its texts. A text that cannot be read stays a reference.
func textsOf(ctx context.Context, m *ctxdir.Message) json.RawMessage {
	body, err := m.Texts(ctx)
	if err != nil && len(body) == 0 {
		return m.Stored
	}
	return body
}

// eachDistinct is walk without texts that the message had before: transcripts store the results of tools twice.
func eachDistinct(message json.RawMessage, want func(name, value string) bool, yield func(t text) bool) {
	const short = 32 // a text that can be repeated without cost
	seen, size := map[string]bool{}, 0
	_ = walk(message, want, func(t text) bool {
		if len(t.value) >= short {
			if seen[t.value] {
				return true
			}
			seen[t.value] = true
		}
		if size += len(t.value); size > maxText {
			return false
		}
		return yield(t)
	})
}

// scope returns the term that the messages of a context have in common.
func scope(context int64) string { return textBreak + strconv.FormatInt(context, 36) }

// cutting cuts messages into terms, in several goroutines, and keeps their order.
type cutting struct {
	queue   chan *cut // in order
	work    chan *cut
	stopped chan struct{}
	stop    func()
	err     error // of reading; valid when documents ends
}

// cut is a message on its way.
type cut struct {
	m    *ctxdir.Message
	done chan *document
}

// maxCuts bounds the messages on their way.
const maxCuts = 16

func newCutting() *cutting {
	c := &cutting{queue: make(chan *cut, maxCuts), work: make(chan *cut, maxCuts), stopped: make(chan struct{})}
	c.stop = sync.OnceFunc(func() { close(c.stopped) })
	return c
}

// run cuts messages until stop.
func (c *cutting) run(ctx context.Context, messages iter.Seq2[*ctxdir.Message, error]) {
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4) {
		group.Go(func() {
			cutter := cutters.Get().(*cutter)
			defer cutters.Put(cutter)
			for x := range c.work {
				x.done <- newDocument(ctx, x.m, cutter)
			}
		})
	}
	c.err = c.queueAll(messages)
	close(c.work)
	group.Wait()
	close(c.queue)
}

func (c *cutting) queueAll(messages iter.Seq2[*ctxdir.Message, error]) error {
	for m, err := range messages {
		if err != nil {
			return err
		}
		x := &cut{m, make(chan *document, 1)}
		select {
		case c.queue <- x:
			c.work <- x
		case <-c.stopped:
			return nil
		}
	}
	return nil
}

// documents yields the documents in order, to the end even after stop.
func (c *cutting) documents() func(yield func(d *document) bool) {
	return func(yield func(d *document) bool) {
		for x := range c.queue {
			yield(<-x.done)
		}
	}
}

// cutters keeps cutters, which remember stems.
var cutters = sync.Pool{New: func() any { return newCutter() }}

// digestion is the data of the digest of a message.
func digestion(ctx context.Context, m *ctxdir.Message) []byte {
	return usage.Digestion(m, func() (json.RawMessage, error) { return m.Texts(ctx) })
}

// sumOf returns the sum that stands for a version of a message: a later version has a later time.
func sumOf(id uuid.UUID, storedAt time.Time) int64 {
	b := binary.LittleEndian.AppendUint64(id[:], uint64(storedAt.UnixMicro()))
	return int64(xxhash.Sum64(b))
}
