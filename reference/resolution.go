package reference

import (
	"fmt"
	"strings"
	"time"
)

// Status says what became of the lines of a reference.
type Status string

// The statuses.
const (
	Found    Status = "found"     // the same lines at the same place
	Shifted  Status = "shifted"   // the same lines at another place of the file
	Modified Status = "modified"  // the file does not have these lines any more
	Moved    Status = "moved"     // the file has another path
	NotFound Status = "not_found" // the file is gone, or cannot be read
)

// Resolution says where the lines of a reference are now.
type Resolution struct {
	Ref      Ref
	Status   Status
	File     string // where the lines are now; for NotFound, where they were
	Lines    Lines  // likewise; for Modified, the lines that took their place
	Blob     string // git's hash of the file as it is now; "" for NotFound
	Text     string // the lines as they are now, at most 64 KiB; "" for NotFound and for binary files
	Fallback string // for lines that are gone: the lines as they were, at most 64 KiB, as far as they are known
	Note     string // what a reader should know, in one line; "" for nothing

	LastCommit string    // for NotFound: the last commit known to have the file
	LastSeen   time.Time // for NotFound: when a message had the lines

	gone bool // no file has the lines
}

// at sets the status and the place of the lines.
func (r *Resolution) at(status Status, c *content, l Lines) {
	r.Status, r.Lines, r.Text, r.gone = status, l, "", status == Modified
	if !c.binary() && c.has(l) {
		r.Text = shown(c.lines(l))
	}
}

// note adds to the note.
func (r *Resolution) note(format string, args ...any) {
	text := oneLine(fmt.Sprintf(format, args...))
	if r.Note != "" {
		text = r.Note + "; " + text
	}
	r.Note = text
}

// shown returns the beginning of lines, in valid UTF-8. It keeps nothing else of the file in memory.
func shown(lines string) string {
	return strings.Clone(strings.ToValidUTF8(cut(lines, maxText), "\ufffd"))
}

func oneLine(s string) string { return cut(strings.Join(strings.Fields(s), " "), 500) }
