package index

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// Kind is the kind of a journal record.
type Kind string

// The kinds of records.
const (
	KindBegin    Kind = "begin"    // the state that a journal continues: the first record of each
	KindAppend   Kind = "append"   // an envelope: the next message of its line
	KindReplace  Kind = "replace"  // an envelope: a new version of a message
	KindMetadata Kind = "metadata" // the object of metadata.json
	KindChange   Kind = "change"   // what changed in the metadata
	KindPayload  Kind = "payload"  // a payload that later messages refer to
	KindTrim     Kind = "trim"     // a line ends earlier from now on: the rest went to the trash
)

// The fields of a record's head, one line, have fixed widths, so that a reader finds the body without parsing:
//
//	{"chain":"0123456789abcdef","prev":"0123456789abcdef","seq":              2,"mark":              1,
//	"kind":"append"  ,"len":       123,"was":         0,"sum":"0123456789abcdef","body":
//
// A begin record has no mark, so that readers of every version can read it. Records of a journal/1 have none, either.
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
	markWidth = len(headMark) + seqWidth

	// Offsets in a head without a mark. A mark is at atKind and moves what follows.
	atPrev = len(headChain) + sumWidth
	atSeq  = atPrev + len(headPrev) + sumWidth
	atKind = atSeq + len(headSeq) + seqWidth
	atLen  = atKind + len(headKind) + kindWidth
	atWas  = atLen + len(headLen) + lenWidth
	atSum  = atWas + len(headWas) + lenWidth
	atBody = atSum + len(headSum) + sumWidth

	// plainSize is the width of a head without a mark, headSize the width with one.
	plainSize = atBody + len(headBody)
	headSize  = plainSize + markWidth
	// tailSize is the size of the closing brace and the newline.
	tailSize = 2

	// markMore stands for the mark in a record that is not the last one of its commit.
	markMore = -1

	maxLen = 9_999_999_999
	maxSeq = 999_999_999_999_999
)

// head is a record without its body.
type head struct {
	chain, prev uint64
	seq         uint64
	mark        uint64 // the writer knows every record up to this number to be durable; 0 for none
	more        bool   // the commit continues with the next record; the mark is on the last one
	kind        Kind
	len         int64
	was         int64  // for a replace: length of the previous version, so that counting bytes needs no look at it
	sum         uint64 // of the body
	width       int    // of the head on disk
}

// place returns the place after the record.
func (h head) place() Spot { return Spot{h.seq, h.chain} }

// size returns the size of the whole record on disk.
func (h head) size() int64 { return int64(h.width) + h.len + tailSize }

// headWidth returns the width of the head that b begins with. It does not verify the head.
func headWidth(b []byte) int {
	if len(b) > atKind && bytes.HasPrefix(b[atKind:], []byte(headKind)) {
		return plainSize
	}
	return headSize
}

// appendRecord appends a whole record. It computes chain and width of h.
func appendRecord(b []byte, h head, body []byte) ([]byte, head) {
	start := len(b)
	b = append(b, headChain...)
	b = appendHex(b, 0)
	b = append(b, headPrev...)
	b = appendHex(b, h.prev)
	b = append(b, headSeq...)
	b = appendPadded(b, int64(h.seq), seqWidth)
	if h.kind != KindBegin {
		b = append(b, headMark...)
		if h.more {
			b = appendPadded(b, markMore, seqWidth)
		} else {
			b = appendPadded(b, int64(h.mark), seqWidth)
		}
	}
	b = append(b, headKind...)
	b = append(b, h.kind...)
	b = append(b, '"')
	for range kindWidth - len(h.kind) - 1 {
		b = append(b, ' ')
	}
	b = append(b, headLen...)
	b = appendPadded(b, h.len, lenWidth)
	b = append(b, headWas...)
	b = appendPadded(b, h.was, lenWidth)
	b = append(b, headSum...)
	b = appendHex(b, h.sum)
	b = append(b, headBody...)
	h.width = len(b) - start
	h.chain = xxhash.Sum64(b[start+atPrev:])
	appendHex(b[start+len(headChain):start+len(headChain)], h.chain)
	b = append(b, body...)
	return append(b, '}', '\n'), h
}

// parseHead parses the head of a record. ok reports whether it is an undamaged head; the body may still be damaged.
func parseHead(b []byte) (h head, ok bool) {
	if h.width = headWidth(b); len(b) < h.width {
		return h, false
	}
	b = b[:h.width]
	shift := h.width - plainSize // 0, or the width of a mark
	mark, rest := b[atKind:atKind+shift], b[shift:]
	if shift > 0 {
		if !bytes.HasPrefix(mark, []byte(headMark)) {
			return h, false
		}
		mark = mark[len(headMark):]
	}
	for _, part := range []struct {
		b    []byte
		at   int
		text string
	}{
		{b, 0, headChain}, {b, atPrev, headPrev}, {b, atSeq, headSeq},
		{rest, atKind, headKind}, {rest, atLen, headLen}, {rest, atWas, headWas}, {rest, atSum, headSum}, {rest, atBody, headBody},
	} {
		if string(part.b[part.at:part.at+len(part.text)]) != part.text {
			return h, false
		}
	}
	var good [7]bool
	h.chain, good[0] = parseHex(b[len(headChain):atPrev])
	h.prev, good[1] = parseHex(b[atPrev+len(headPrev) : atSeq])
	h.sum, good[2] = parseHex(rest[atSum+len(headSum) : atBody])
	var seq, known int64
	seq, good[3] = parsePadded(b[atSeq+len(headSeq) : atKind])
	h.len, good[4] = parsePadded(rest[atLen+len(headLen) : atWas])
	h.was, good[5] = parsePadded(rest[atWas+len(headWas) : atSum])
	if h.more = string(bytes.TrimLeft(mark, " ")) == "-1"; !h.more {
		known, good[6] = parsePadded(mark)
	}
	good[6] = good[6] || h.more || shift == 0
	if good != [7]bool{true, true, true, true, true, true, true} || xxhash.Sum64(b[atPrev:]) != h.chain {
		return h, false
	}
	h.seq, h.mark = uint64(seq), uint64(known)
	word, _, found := bytes.Cut(rest[atKind+len(headKind):atLen], []byte{'"'})
	h.kind = Kind(word)
	return h, found
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

func parseHexString(s string) (uint64, error) {
	v, ok := parseHex([]byte(s))
	if !ok {
		return 0, fmt.Errorf("%q is not a checksum", s)
	}
	return v, nil
}
