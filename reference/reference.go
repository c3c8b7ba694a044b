// Package reference keeps references to lines of files in messages, in place of copies of code, and finds these lines
// again in a working tree that has changed.
//
// [New] describes lines of a file as they are now. [Encode] makes them the References of a draft; the body of the message
// stays as the framework has it. [Of] returns the references of a message: the stored ones, and those that its tool
// calls and their results imply. [Resolve] says where the lines of many references are now, and reads them.
//
//	ref, err := reference.New(ctx, root, "store.go", 10, 24)
//	_, err = branch.Append(ctx, ctxdir.Draft{Body: body, References: reference.Encode([]reference.Ref{ref})})
//
//	refs, err := reference.Of(ctx, message, root)
//	resolutions, err := reference.Resolve(ctx, root, refs)
//
// Nothing in a reference names a user or a folder outside the workspace: files are relative to the workspace's root, with
// slashes. A reference that was read from a store is not trusted: no file, line, hash or text in it makes a resolution
// leave the root, run a program, or allocate much.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package reference

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ctxdir/ctxdir/internal/message"
)

// Limits of references, as they are stored.
const (
	MaxRefs    = 1000    // in one message
	maxFile    = 4 << 10 // bytes of a path
	maxContext = 512     // bytes of the lines that a reference keeps
	maxDiff    = 16 << 10
)

// ErrInvalid is wrapped by errors about a reference, a file or lines that are invalid.
var ErrInvalid = errors.New("invalid reference")

// Ref is a reference to lines of a file. Only File is required. A member that is not known is zero.
type Ref struct {
	File    string `json:"file"`              // relative to the root of the workspace, with slashes
	Lines   Lines  `json:"lines,omitzero"`    // zero for the whole file
	Commit  string `json:"commit,omitempty"`  // the commit that was checked out
	Blob    string `json:"blob,omitempty"`    // git's hash of the whole file, as it was on disk
	Sum     string `json:"sum,omitempty"`     // of the lines: see [Sum]
	Size    int64  `json:"size,omitzero"`     // of the lines, in bytes, with "\n" at the end of each
	Context string `json:"context,omitempty"` // the first of the lines, as a fallback
	Diff    string `json:"diff,omitempty"`    // changes of the file that were not committed, as hunks of a unified diff

	Computed bool      `json:"-"` // read from a tool call or its result, not stored as a reference
	Seen     time.Time `json:"-"` // when the message had the lines
}

// Lines is a range of lines, counted from 1. Both ends are in it.
type Lines struct{ From, To int64 }

// IsZero reports whether the range is that of a whole file.
func (l Lines) IsZero() bool { return l == Lines{} }

// Count returns the number of lines, 0 for a whole file.
func (l Lines) Count() int64 {
	if l.IsZero() {
		return 0
	}
	return l.To - l.From + 1
}

// String is the range as people write it: "10-24", "7", or "" for a whole file.
func (l Lines) String() string {
	switch {
	case l.IsZero():
		return ""
	case l.From == l.To:
		return fmt.Sprint(l.From)
	}
	return fmt.Sprintf("%d-%d", l.From, l.To)
}

// MarshalJSON returns the range as an array of two numbers.
func (l Lines) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d,%d]", l.From, l.To), nil }

// UnmarshalJSON reads an array of two numbers.
func (l *Lines) UnmarshalJSON(b []byte) error {
	var ends []int64
	if err := json.Unmarshal(b, &ends); err != nil {
		return err
	}
	if len(ends) != 2 {
		return fmt.Errorf("%w: lines: expected 2 numbers, got %d", ErrInvalid, len(ends))
	}
	*l = Lines{ends[0], ends[1]}
	return nil
}

// String is the reference as people write it: "store.go:10-24".
func (r *Ref) String() string {
	if r.Lines.IsZero() {
		return r.File
	}
	return r.File + ":" + r.Lines.String()
}

// Validate fails with [ErrInvalid] unless the reference has the form that docs/APPLICATIONS.md describes.
func (r *Ref) Validate() error {
	switch {
	case !validFile(r.File):
		return fmt.Errorf("%w: %q is not a path below the root of a workspace", ErrInvalid, cut(r.File, 200))
	case !r.Lines.IsZero() && (r.Lines.From < 1 || r.Lines.To < r.Lines.From):
		return fmt.Errorf("%w: lines %s of %s are not a range", ErrInvalid, r.Lines, r.File)
	case !isHash(r.Commit) || !isHash(r.Blob):
		return fmt.Errorf("%w: a hash of %s is not 40 or 64 hexadecimal digits", ErrInvalid, r.File)
	case r.Sum != "" && (len(r.Sum) != 16 || !isHex(r.Sum)):
		return fmt.Errorf("%w: the sum of %s is not 16 hexadecimal digits", ErrInvalid, r.File)
	case r.Size < 0:
		return fmt.Errorf("%w: the lines of %s have the negative size %d", ErrInvalid, r.File, r.Size)
	}
	return nil
}

// validFile reports whether a path stays below a root on every system. It has no name that a program could take for
// anything else: no control character, no ".", no empty name.
func validFile(file string) bool {
	return len(file) <= maxFile && fs.ValidPath(file) && file != "." && !strings.ContainsFunc(file, unicode.IsControl) &&
		!strings.ContainsRune(file, '\\')
}

func isHash(s string) bool { return s == "" || (len(s) == 40 || len(s) == 64) && isHex(s) }

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && s == strings.ToLower(s)
}

// Encode returns references as the References of a draft. It leaves out those that are invalid or computed, and shortens
// texts that are too long. It returns nil for none.
func Encode(refs []Ref) json.RawMessage {
	var kept []Ref
	for _, r := range refs {
		if r.Computed || r.Validate() != nil || len(kept) == MaxRefs {
			continue
		}
		r.Context, r.Diff = cut(strings.ToValidUTF8(r.Context, "\ufffd"), maxContext), strings.ToValidUTF8(r.Diff, "\ufffd")
		if len(r.Diff) > maxDiff {
			r.Diff = ""
		}
		kept = append(kept, r)
	}
	if kept == nil {
		return nil
	}
	b, err := jsonv2.Marshal(kept)
	if err != nil {
		return nil
	}
	return b
}

// Decode returns the valid references of the member "references" of a message, at most [MaxRefs]. The error wraps
// [ErrInvalid] and says that others were left out.
func Decode(references json.RawMessage) ([]Ref, error) {
	if len(bytes.TrimSpace(references)) == 0 {
		return nil, nil
	}
	var refs []Ref
	var problems []error
	err := message.Elements(references, func(v jsontext.Value) error {
		if len(refs) == MaxRefs {
			return fmt.Errorf("%w: the references of a message exceed the limit of %d", ErrInvalid, MaxRefs)
		}
		var r Ref
		err := jsonv2.Unmarshal(v, &r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if err == nil {
			err = r.Validate()
		}
		if err != nil {
			if len(problems) < 10 {
				problems = append(problems, fmt.Errorf("%w: %w", ErrInvalid, err))
			}
			return nil
		}
		r.Context, r.Diff = cut(r.Context, maxContext), cut(r.Diff, maxDiff)
		refs = append(refs, r)
		return nil
	})
	return refs, errors.Join(append(problems, err)...)
}

// cut shortens a text to so many bytes, between characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
