// Package journal has what the files of a history share: the places in it.
package journal

import (
	"bytes"
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/message"
)

// Position is a place in the history of a context: the number of a record, and its chain. The record after it has the next
// number and names the chain.
type Position struct{ Seq, Chain uint64 }

// Kind is the kind of a record.
type Kind string

// The kinds of records.
const (
	Begin    Kind = "begin"    // the state that a log continues: the first record of each
	End      Kind = "end"      // the name of the log that continues this one: the last record of each but the newest
	Add      Kind = "append"   // an envelope: the next message of its line
	Replace  Kind = "replace"  // an envelope: a new version of a message
	Metadata Kind = "metadata" // the object of metadata.json
	Change   Kind = "change"   // what changed in the metadata
	Payload  Kind = "payload"  // a payload that later messages refer to
	Trim     Kind = "trim"     // a line ends earlier from now on
	Erase    Kind = "erase"    // messages are erased from now on
)

// The fields of a record's head, one line, have fixed widths, so that a reader finds the body without parsing:
//
//	{"chain":"0123456789abcdef","prev":"0123456789abcdef","seq":              2,"mark":              1,
//	"kind":"append"  ,"len":       123,"was":         0,"sum":"0123456789abcdef","body":
const (
	headChain = `{"chain":"`
	headPrev  = `","prev":"`
	headSeq   = `","seq":`
	headMark  = `,"mark":`
	headKind  = `,"kind":"`
	headLen   = `,"len":`
	headWas   = `,"was":`
	headSum   = `,"sum":"`
	headBody  = `","body":`

	sumWidth  = 16
	seqWidth  = 15
	kindWidth = 9 // with the closing quotation mark
	lenWidth  = 10

	atPrev = len(headChain) + sumWidth
	atSeq  = atPrev + len(headPrev) + sumWidth
	atMark = atSeq + len(headSeq) + seqWidth
	atKind = atMark + len(headMark) + seqWidth
	atLen  = atKind + len(headKind) + kindWidth
	atWas  = atLen + len(headLen) + lenWidth
	atSum  = atWas + len(headWas) + lenWidth
	atBody = atSum + len(headSum) + sumWidth

	headSize = atBody + len(headBody)
	// tailSize is the size of the closing brace and the newline.
	tailSize = 2

	// markMore stands for the mark in a record that is not the last one of its commit.
	markMore = -1

	maxLen = 9_999_999_999
	MaxSeq = 999_999_999_999_999
)

// Head is a record without its body.
type Head struct {
	Chain, Prev uint64
	Seq         uint64
	Mark        uint64 // the writer knew every record up to this number to be durable; 0 for none
	More        bool   // the commit continues with the next record; the mark is on the last one
	Kind        Kind
	Len         int64
	Was         int64  // of a replace: length of the previous version, so that counting bytes needs no look at it
	Sum         uint64 // of the body
}

// Position returns the place after the record: after a begin or end record, which has no number of its own, the place before.
func (h *Head) Position() Position {
	if h.Kind == Begin || h.Kind == End {
		return Position{h.Seq, h.Prev}
	}
	return Position{h.Seq, h.Chain}
}

// before returns the number of the record before.
func (h *Head) before() uint64 {
	if h.Kind == Begin || h.Kind == End {
		return h.Seq
	}
	return h.Seq - 1
}

// Size returns the size of the whole record on disk.
func (h *Head) Size() int64 { return int64(headSize) + h.Len + tailSize }

// appendRecord appends a whole record, and sets its chain.
func appendRecord(b []byte, h *Head, body []byte) []byte {
	start := len(b)
	b = appendHex(append(b, headChain...), 0)
	b = appendHex(append(b, headPrev...), h.Prev)
	b = appendPadded(append(b, headSeq...), int64(h.Seq), seqWidth)
	mark := int64(h.Mark)
	if h.More {
		mark = markMore
	}
	b = appendPadded(append(b, headMark...), mark, seqWidth)
	b = append(append(append(b, headKind...), h.Kind...), '"')
	for range kindWidth - len(h.Kind) - 1 {
		b = append(b, ' ')
	}
	b = appendPadded(append(b, headLen...), h.Len, lenWidth)
	b = appendPadded(append(b, headWas...), h.Was, lenWidth)
	b = appendHex(append(b, headSum...), h.Sum)
	b = append(b, headBody...)
	h.Chain = xxhash.Sum64(b[start+atPrev:])
	appendHex(b[start+len(headChain):start+len(headChain)], h.Chain)
	return append(append(b, body...), '}', '\n')
}

// headParts are the texts between the fields of a head.
var headParts = []struct {
	at   int
	text string
}{
	{0, headChain}, {atPrev, headPrev}, {atSeq, headSeq}, {atMark, headMark}, {atKind, headKind}, {atLen, headLen}, {atWas, headWas},
	{atSum, headSum}, {atBody, headBody},
}

// parseHead parses the head of a record. ok reports whether it is an undamaged head; the body may still be damaged.
func parseHead(b []byte) (h Head, ok bool) {
	if len(b) < headSize {
		return h, false
	}
	b = b[:headSize]
	for _, part := range headParts {
		if string(b[part.at:part.at+len(part.text)]) != part.text {
			return h, false
		}
	}
	var good [7]bool
	var seq, mark int64
	h.Chain, good[0] = parseHex(b[len(headChain):atPrev])
	h.Prev, good[1] = parseHex(b[atPrev+len(headPrev) : atSeq])
	h.Sum, good[2] = parseHex(b[atSum+len(headSum) : atBody])
	seq, good[3] = parsePadded(b[atSeq+len(headSeq) : atMark])
	h.Len, good[4] = parsePadded(b[atLen+len(headLen) : atWas])
	h.Was, good[5] = parsePadded(b[atWas+len(headWas) : atSum])
	text := b[atMark+len(headMark) : atKind]
	if h.More = string(bytes.TrimLeft(text, " ")) == "-1"; h.More {
		good[6] = true
	} else {
		mark, good[6] = parsePadded(text)
	}
	if good != [7]bool{true, true, true, true, true, true, true} || xxhash.Sum64(b[atPrev:]) != h.Chain {
		return h, false
	}
	h.Seq, h.Mark = uint64(seq), uint64(mark)
	word, _, found := bytes.Cut(b[atKind+len(headKind):atLen], []byte{'"'})
	h.Kind = Kind(word)
	return h, found && h.before() <= h.Seq // 0 is the number of no record
}

// ended reports whether b, the bytes after a record's body, ends the record.
func ended(b []byte) bool { return len(b) >= tailSize && b[0] == '}' && b[1] == '\n' }

const hexDigits = "0123456789abcdef"

func appendHex(b []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[v>>shift&15])
	}
	return b
}

func parseHex(b []byte) (v uint64, ok bool) {
	if len(b) != sumWidth {
		return 0, false
	}
	return parseHexDigits(b)
}

// hexValues maps the digits to their values, anything else to 255.
var hexValues = func() (values [256]byte) {
	for i := range values {
		values[i] = 255
	}
	for i, c := range hexDigits {
		values[c] = byte(i)
	}
	return values
}()

// parseHexDigits parses up to 16 digits.
func parseHexDigits(b []byte) (v uint64, ok bool) {
	bad := byte(0)
	for _, c := range b {
		d := hexValues[c]
		bad |= d
		v = v<<4 | uint64(d&15)
	}
	return v, bad < 16
}

func appendPadded(b []byte, v int64, width int) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], v, 10)
	for range width - len(d) {
		b = append(b, ' ')
	}
	return append(b, d...)
}

// parsePadded parses a number of up to 19 digits after spaces.
func parsePadded(b []byte) (v int64, ok bool) {
	b = bytes.TrimLeft(b, " ")
	for _, c := range b {
		d := int64(c - '0')
		if c < '0' || c > '9' || v > (math.MaxInt64-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, len(b) > 0
}

// Hex formats a checksum as the files do.
func Hex(sum uint64) string { return string(appendHex(nil, sum)) }

// IsRecord reports whether a line of a log, with its newline, is a whole record.
func IsRecord(line []byte) bool {
	h, ok := parseHead(line)
	if !ok || h.Len > maxLen || h.Size() != int64(len(line)) {
		return false
	}
	body := line[headSize:]
	return ended(body[h.Len:]) && message.Sum(body[:h.Len]) == h.Sum
}

// After returns the place after a record that follows a place, although no log has it: a segment was written instead.
func After(at Position, kind Kind, body []byte) Position {
	h := Head{Prev: at.Chain, Seq: at.Seq + 1, Kind: kind, Len: int64(len(body)), Sum: message.Sum(body)}
	appendRecord(nil, &h, nil)
	return h.Position()
}
