package reference

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/rogpeppe/go-internal/diff"
)

const (
	maxContent = 8 << 20 // bytes of a file that is compared
	maxLines   = 1 << 20 // of such a file
	maxText    = 64 << 10
	work       = 1 << 30 // bytes that one resolution reads or hashes in search of lines
	step       = 16      // bytes that a look at a line counts as
)

// content is a file in lines.
type content struct {
	text   string
	starts []int32 // of each line
	blobs  map[int]string
}

// newContent cuts a file into lines. It returns nil if there are too many.
func newContent(b []byte) *content {
	c := &content{text: string(b), blobs: map[int]string{}}
	if len(b) > maxContent || bytes.Count(b, []byte("\n")) > maxLines {
		return nil
	}
	for at := 0; at < len(c.text); {
		c.starts = append(c.starts, int32(at))
		end := strings.IndexByte(c.text[at:], '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	return c
}

// count returns the number of lines.
func (c *content) count() int64 { return int64(len(c.starts)) }

// has reports whether the file has lines with these numbers.
func (c *content) has(l Lines) bool {
	return l.IsZero() || l.From >= 1 && l.From <= l.To && l.To <= c.count()
}

// lines returns lines of the file, which it must have.
func (c *content) lines(l Lines) string {
	if l.IsZero() {
		return c.text
	}
	end := len(c.text)
	if l.To < c.count() {
		end = int(c.starts[l.To])
	}
	return c.text[c.starts[l.From-1]:end]
}

// line returns a line without its end, counted from 1.
func (c *content) line(n int64) string { return strings.TrimRight(c.lines(Lines{n, n}), "\r\n") }

// binary reports whether the file is not text, as git does.
func (c *content) binary() bool { return strings.IndexByte(c.text[:min(len(c.text), 8000)], 0) >= 0 }

// blob returns git's hash of the file, in so many hexadecimal digits.
func (c *content) blob(digits int) string {
	if digits != 2*sha256.Size {
		digits = 2 * sha1.Size
	}
	if c.blobs[digits] == "" {
		c.blobs[digits] = blobOf(c.text, digits)
	}
	return c.blobs[digits]
}

// blobOf returns git's hash of a file.
func blobOf(text string, digits int) string {
	h := sha1.New()
	if digits == 2*sha256.Size {
		h = sha256.New()
	}
	h.Write([]byte("blob " + strconv.Itoa(len(text)) + "\x00"))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// Sum returns the checksum of lines. The form of their ends does not count: it is the same for "\n", "\r\n", and none at
// the end of the last line.
func Sum(lines string) string {
	return fmt.Sprintf("%016x", message.Sum([]byte(unified(lines))))
}

// unified returns lines that all end with "\n".
func unified(lines string) string {
	if strings.Contains(lines, "\r\n") {
		lines = strings.ReplaceAll(lines, "\r\n", "\n")
	}
	if lines != "" && !strings.HasSuffix(lines, "\n") {
		lines += "\n"
	}
	return lines
}

// find returns the place of the lines that have a sum: the nearest one to where they were. first is how they begin, as
// far as that is known. budget is the work that is left.
func (c *content) find(sum string, was Lines, first string, budget *int64) (Lines, bool) {
	n := was.Count()
	if sum == "" || n == 0 || n > c.count() {
		return Lines{}, false
	}
	head, _, _ := strings.Cut(first, "\n")
	last := c.count() - n + 1 // the greatest line where they can begin
	at := min(was.From, last)
	for d := int64(0); *budget > 0 && (at-d >= 1 || at+d <= last); d++ {
		for _, from := range [...]int64{at - d, at + d} {
			*budget -= step
			if from < 1 || from > last || first != "" && !strings.HasPrefix(c.line(from), head) {
				continue
			}
			l := Lines{from, from + n - 1}
			text := c.lines(l)
			if *budget -= int64(len(text)); Sum(text) == sum {
				return l, true
			}
		}
	}
	return Lines{}, false
}

// clamp returns the lines of the file at the numbers of lines that it may not have.
func (c *content) clamp(l Lines) Lines {
	if l.IsZero() || c.count() == 0 {
		return Lines{}
	}
	from := min(max(l.From, 1), c.count())
	return Lines{from, max(from, min(l.To, c.count()))}
}

// near guesses where lines that changed are now, from how they began.
func (c *content) near(was Lines, first string, budget *int64) Lines {
	head, _, _ := strings.Cut(first, "\n")
	n, at := was.Count(), c.clamp(was).From
	head = strings.TrimSpace(head)
	for d := int64(0); n > 0 && head != "" && *budget > 0 && (at-d >= 1 || at+d <= c.count()); d++ {
		for _, from := range [...]int64{at - d, at + d} {
			*budget -= step
			if from >= 1 && from <= c.count() && strings.TrimSpace(c.line(from)) == head {
				return c.clamp(Lines{from, from + min(n, math.MaxInt32) - 1})
			}
		}
	}
	return c.clamp(was)
}

// follow returns where lines of an older version are in this one. Lines that are gone leave the place where they were.
// hunks are the difference of the versions.
func (c *content) follow(was Lines, hunks []hunk) Lines {
	if was.IsZero() {
		return c.clamp(was)
	}
	from, to := was.From, was.To
	shift := int64(0) // of the lines after the last hunk before was
	now := Lines{}
	for _, h := range hunks {
		if now.From == 0 && from < h.old {
			now.From = from + shift
		}
		if now.From == 0 && from < h.old+h.oldLines {
			now.From = h.new + min(from-h.old, max(h.newLines-1, 0))
		}
		if to < h.old {
			break
		}
		if to < h.old+h.oldLines {
			now.To = h.new + max(h.newLines-1-(h.old+h.oldLines-1-to), 0)
			break
		}
		shift = h.new + h.newLines - h.old - h.oldLines
	}
	if now.From == 0 {
		now.From = from + shift
	}
	if now.To == 0 {
		now.To = to + shift
	}
	return c.clamp(now)
}

// hunk is a run of lines that another one replaces, without lines around it.
type hunk struct{ old, oldLines, new, newLines int64 }

// hunksOf returns the difference of two versions.
func hunksOf(old, now *content) (hunks []hunk) {
	inside := hunk{}
	add := func() {
		if inside.oldLines+inside.newLines > 0 {
			hunks = append(hunks, inside)
		}
		inside = hunk{old: inside.old + inside.oldLines, new: inside.new + inside.newLines}
	}
	for line := range strings.Lines(string(diff.Diff("a", []byte(unified(old.text)), "b", []byte(unified(now.text))))) {
		switch {
		case strings.HasPrefix(line, "@@ "):
			add()
			inside = hunk{}
			_, _ = fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &inside.old, &inside.oldLines, &inside.new, &inside.newLines)
			inside.oldLines, inside.newLines = 0, 0
		case inside.old+inside.new == 0: // before the first hunk
		case line[0] == '-':
			inside.oldLines++
		case line[0] == '+':
			inside.newLines++
		case line[0] == ' ':
			add()
			inside.old++
			inside.new++
		}
	}
	add()
	return hunks
}

// diffOf returns the difference of two versions as hunks with lines around them.
func diffOf(old, now *content) string {
	text := string(diff.Diff("a", []byte(unified(old.text)), "b", []byte(unified(now.text))))
	at := strings.Index(text, "\n@@ ")
	if at < 0 {
		return ""
	}
	return text[at+1:]
}
