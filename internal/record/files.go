package record

import (
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/ctxdir/ctxdir/search"
)

// FileRow is a file that a message attaches, or that a tool reads or writes.
type FileRow struct {
	Record    string    `json:"record,omitempty"`
	Path      string    `json:"path"`
	Access    string    `json:"access"`
	Type      string    `json:"type"`
	Size      *int64    `json:"size"` // null if the message does not have the content
	IsText    bool      `json:"is_text"`
	CreatedAt time.Time `json:"created_at"`
	Context   string    `json:"context"`
	Branches  []string  `json:"branches"`
	Position  int64     `json:"position"`
	ID        string    `json:"id"`
	Role      string    `json:"role"`
	Pointer   string    `json:"pointer"`
	Payload   string    `json:"payload,omitempty"`
}

// OfFileRow describes a file.
func OfFileRow(r *search.FileRow) FileRow {
	f := FileRow{
		"", r.Path, r.Access, r.Type, nil, r.IsText, r.At, r.Context.String(), List(r.Branches), r.Position, r.ID.String(), r.Role, r.Pointer,
		r.Payload,
	}
	if r.Size >= 0 {
		f.Size = &r.Size
	}
	return f
}

// PathCount says how often messages touch the files of a path.
type PathCount struct {
	Record   string    `json:"record,omitempty"`
	Path     string    `json:"path"`
	Times    int       `json:"times"`
	Contexts int       `json:"contexts"`
	LastAt   time.Time `json:"last_at"`
}

// OfPathCount describes a path.
func OfPathCount(c search.PathCount) PathCount {
	return PathCount{"", c.Path, c.Times, c.Contexts, c.Last}
}

// Reference is a reference of a message to lines of a file.
type Reference struct {
	Record   string    `json:"record,omitempty"`
	Context  string    `json:"context"`
	Branch   string    `json:"branch"`
	Position int64     `json:"position"`
	ID       string    `json:"id"`
	Origin   string    `json:"origin"` // message or tool
	File     string    `json:"file"`
	Lines    []int64   `json:"lines,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Blob     string    `json:"blob,omitempty"`
	Sum      string    `json:"sum,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Excerpt  string    `json:"excerpt,omitempty"`
	Diff     string    `json:"diff,omitempty"`
	SeenAt   time.Time `json:"seen_at,omitzero"`
}

// OfReference describes a reference of a message on a branch.
func OfReference(c *ctxdir.Context, branch string, m *ctxdir.Message, r *reference.Ref) Reference {
	is := Reference{
		"", c.ID().String(), branch, m.Position, m.ID.String(), "message", r.File, Lines(r.Lines), r.Commit, r.Blob, r.Sum, r.Size,
		r.Context, r.Diff, r.Seen,
	}
	if r.Computed {
		is.Origin = "tool"
	}
	return is
}

// Lines are the first and the last line of a range, none for all lines.
func Lines(l reference.Lines) []int64 {
	if l.IsZero() {
		return nil
	}
	return []int64{l.From, l.To}
}

// Size is the size of a context or of a branch.
type Size struct {
	Record        string `json:"record,omitempty"`
	Context       string `json:"context"`
	Branch        string `json:"branch,omitempty"` // none for the whole context
	Messages      int64  `json:"messages"`
	Bytes         int64  `json:"bytes"`
	ArchivedBytes int64  `json:"archived_bytes"`
	BlobBytes     *int64 `json:"blob_bytes,omitempty"` // of one whole context: on disk, even if shared with others
	Disk          *int64 `json:"disk_bytes,omitempty"` // of a whole context: its folder, without blobs
	Problem       string `json:"problem,omitempty"`
}

// OfSize describes the size of a whole context.
func OfSize(s ctxdir.Summary) Size {
	return Size{
		Context: s.ID.String(), Messages: s.Messages, Bytes: s.Bytes, ArchivedBytes: s.Archived, Problem: Problem(s.Problem),
	}
}

// OfBranchSize describes the size of a branch.
func OfBranchSize(c *ctxdir.Context, b ctxdir.BranchInfo) Size {
	return Size{Context: c.ID().String(), Branch: b.Name, Messages: b.Messages, Bytes: b.Bytes, ArchivedBytes: b.Archived}
}
