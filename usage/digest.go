package usage

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// Digest is all that the count of steps needs of a message: numbers, sums of keys, and the names of models, but no text.
type Digest struct {
	ID       uuid.UUID
	Position int64
	Data     []byte // see [Digestion]; empty for a message that adds nothing
}

// digest is the content of a Digest.
type digest struct {
	at          time.Time // of the message; only of one with records, or of a reply
	prompt      bool      // a person says something
	reply       bool      // the model says something
	next        string    // the model of the calls that follow, if the message says so
	records     []record
	said, heard int64 // estimates of the tokens that the speaker says, and that tools answer
}

// Digestion returns the data of the digest of a message, nil for one that adds nothing. texts returns the message with
// its texts in their places, as [ctxdir.Message.Texts] does. It is called only if short texts are in blobs; if it fails,
// the message counts as it is stored.
func Digestion(m *ctxdir.Message, texts func() (json.RawMessage, error)) []byte {
	d := recordsAndPrompt(m, texts)
	d.estimate(m)
	return d.encode()
}

// recordsAndPrompt returns the digest of a message, but leaves the estimates at zero.
func recordsAndPrompt(m *ctxdir.Message, texts func() (json.RawMessage, error)) (d digest) {
	d.prompt = promptOf(m) != ""
	if mayRecord(m.Stored) {
		d.records, d.next = recordsOf(withShortTexts(m, texts))
	}
	if len(d.records) > 0 {
		d.at = timeOf(m)
	}
	return d
}

func timeOf(m *ctxdir.Message) time.Time {
	if m.CreatedAt.IsZero() {
		return m.StoredAt
	}
	return m.CreatedAt
}

// maxShort bounds the texts that records need, in bytes. Only a store with a low threshold has them in blobs.
const maxShort = 1 << 10

// withShortTexts is a message with its short texts in their places.
func withShortTexts(m *ctxdir.Message, texts func() (json.RawMessage, error)) json.RawMessage {
	payloads, err := m.Payloads()
	if err != nil || !slices.ContainsFunc(payloads, func(p ctxdir.Payload) bool { return !p.Binary && p.Size < maxShort }) {
		return m.Stored
	}
	body, err := texts()
	if len(body) == 0 || err != nil {
		return m.Stored
	}
	return body
}

// maxPrompt bounds the beginning of a prompt, in bytes.
const maxPrompt = 120

// toolResult is in most messages that have the role of a user and are not a person's. It saves parsing them.
var toolResult = []byte(`"type":"tool_result"`)

// promptOf is the beginning of what a person says in a message, "" if it is none of a person.
func promptOf(m *ctxdir.Message) string {
	if transcript.Voice(m.Role) != transcript.User || bytes.Contains(m.Stored, toolResult) || transcript.Bookkeeping(m.Stored) {
		return ""
	}
	for _, p := range transcript.Parts(m.Stored) {
		if p.Kind != transcript.Text {
			continue
		}
		if text := message.Said(p.Text); text != "" {
			return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxPrompt)], ""))
		}
	}
	return ""
}

// estimate adds the estimates of a message.
func (d *digest) estimate(m *ctxdir.Message) {
	if message.IsBookkeeping(m.Role) || transcript.Bookkeeping(m.Stored) {
		return
	}
	parts := transcript.Parts(m.Stored)
	d.said, d.heard = sizes(m, parts)
	if transcript.VoiceOf(m.Role, parts) == transcript.Assistant {
		d.reply, d.at = true, timeOf(m)
	}
}

// Flags of a digest and of a record.
const (
	hasPrompt = 1 << iota
	isReply
	hasModel // of the calls that follow
)

const (
	hasKey = 1 << iota
	isLocal
	isCounted
	isPriced
	isSums
	isTotal
	hasName // of the model
)

// A digest is, as bytes: its flags; said, heard, and the number of records as unsigned varints; the name of the model
// of the calls that follow; then, if it is a reply or has records, its time as seconds since 1970 (a varint) and
// nanoseconds (an unsigned one); then the records. A record is its flags, the key (16 bytes), the model, nine counts and the
// number of calls as unsigned varints, and the cost as an IEEE double, big-endian, if it is known. A name is its length, an unsigned
// varint, and its bytes. What a flag denies is left out.

func (d *digest) encode() []byte {
	flags := flag(d.prompt, hasPrompt) | flag(d.reply, isReply) | flag(d.next != "", hasModel)
	if flags == 0 && d.said == 0 && d.heard == 0 && len(d.records) == 0 {
		return nil
	}
	b := append(make([]byte, 0, 64), flags)
	for _, n := range []int64{d.said, d.heard, int64(len(d.records))} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = appendName(b, d.next)
	if d.reply || len(d.records) > 0 {
		b = binary.AppendVarint(b, d.at.Unix())
		b = binary.AppendUvarint(b, uint64(d.at.Nanosecond()))
	}
	for i := range d.records {
		b = d.records[i].encode(b)
	}
	return b
}

func (r *record) encode(b []byte) []byte {
	b = append(b, flag(r.key != callKey{}, hasKey)|flag(r.local, isLocal)|flag(r.counted, isCounted)|flag(r.priced, isPriced)|
		flag(r.sums, isSums)|flag(r.total, isTotal)|flag(r.model != "", hasName))
	if r.key != (callKey{}) {
		b = append(b, r.key[:]...)
	}
	b = appendName(b, r.model)
	for _, n := range r.tokens.fields() {
		b = binary.AppendUvarint(b, uint64(*n))
	}
	b = binary.AppendUvarint(b, uint64(r.calls))
	if r.priced {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(r.cost))
	}
	return b
}

func flag(is bool, bit byte) byte {
	if is {
		return bit
	}
	return 0
}

func appendName(b []byte, name string) []byte {
	if name == "" {
		return b
	}
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

// errDigest reports data that no message has.
var errDigest = errors.New("usage: damaged digest of a message")

// decodeDigest reads the data of a digest.
func decodeDigest(data []byte) (d digest, err error) {
	if len(data) == 0 {
		return d, nil
	}
	r := digestReader{rest: data}
	flags := r.byte()
	d.prompt, d.reply = flags&hasPrompt != 0, flags&isReply != 0
	d.said, d.heard = r.count(), r.count()
	n := r.count()
	if flags&hasModel != 0 {
		d.next = r.name()
	}
	if d.reply || n > 0 {
		seconds, size := binary.Varint(r.rest)
		r.skip(size)
		d.at = time.Unix(seconds, r.count())
	}
	if n > int64(len(r.rest)) { // each has a byte at least
		return digest{}, errDigest
	}
	for range n {
		d.records = append(d.records, r.record())
	}
	if r.failed || len(r.rest) > 0 {
		return digest{}, errDigest
	}
	return d, nil
}

// digestReader reads the values of a digest. After the first failure all values are zero.
type digestReader struct {
	rest   []byte
	failed bool
}

// skip drops n bytes. A number of 0 or less, or of more than there are, is a failure.
func (r *digestReader) skip(n int) []byte {
	if r.failed = r.failed || n <= 0 || n > len(r.rest); r.failed {
		r.rest = nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *digestReader) byte() byte {
	if b := r.skip(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *digestReader) count() int64 {
	n, size := binary.Uvarint(r.rest)
	if r.skip(size) == nil || n > math.MaxInt64 {
		r.failed = true
		return 0
	}
	return int64(n)
}

func (r *digestReader) name() string { return string(r.skip(int(min(r.count(), math.MaxInt32)))) }

func (r *digestReader) record() (is record) {
	flags := r.byte()
	if flags&hasKey != 0 {
		copy(is.key[:], r.skip(len(is.key)))
	}
	is.local, is.counted, is.priced = flags&isLocal != 0, flags&isCounted != 0, flags&isPriced != 0
	is.sums, is.total = flags&isSums != 0, flags&isTotal != 0
	if flags&hasName != 0 {
		is.model = r.name()
	}
	for _, n := range is.tokens.fields() {
		*n = r.count()
	}
	is.calls = r.count()
	if is.priced {
		if b := r.skip(8); b != nil {
			is.cost = math.Float64frombits(binary.BigEndian.Uint64(b))
		}
	}
	return is
}

// Index has the digests of messages, so that a [Counter] does not read them again. [Digestion] makes the data. The
// search index of package search is one.
type Index interface {
	// UpdateContext brings the digests of a context up to date.
	UpdateContext(ctx context.Context, id uuid.UUID) error
	// Digests yields the digests of the available messages that a line of a context has at the positions from and later,
	// in order, with those that it inherits. It yields nothing for a line that it does not know.
	Digests(ctx context.Context, id, line uuid.UUID, from int64) iter.Seq2[Digest, error]
}
