package reference

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// New returns a reference to the lines a to b of a file, as they are now below the root of a workspace; 0 and 0 stand for
// the whole file. The file is a path relative to the root, or an absolute one below it. New fails with [ErrInvalid] if
// the file has no such lines.
func New(ctx context.Context, root, file string, a, b int64) (Ref, error) {
	t, err := openTree(root)
	if err != nil {
		return Ref{}, err
	}
	defer t.close()
	r := Ref{Lines: Lines{a, b}, Seen: time.Now().UTC()}
	if r.File, err = relative(root, file); err != nil {
		return Ref{}, err
	}
	if err := r.Validate(); err != nil {
		return Ref{}, err
	}
	c, err := t.read(r.File)
	if err != nil {
		return Ref{}, fmt.Errorf("read %s: %w", r.File, err)
	}
	if !c.has(r.Lines) {
		return Ref{}, fmt.Errorf("%w: %s has %d lines, not %s", ErrInvalid, r.File, c.count(), r.Lines)
	}
	r.describe(c)
	short, stop := context.WithTimeout(ctx, gitTime)
	defer stop()
	r.addCommit(short, root, c)
	return r, ctx.Err()
}

// relative returns a path relative to the root, with slashes.
func relative(root, file string) (string, error) {
	if filepath.IsAbs(file) {
		abs, err := filepath.Abs(root)
		if err == nil {
			file, err = filepath.Rel(abs, file)
		}
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return filepath.ToSlash(filepath.Clean(file)), nil
}

// describe adds what the file says about the lines.
func (r *Ref) describe(c *content) {
	text := c.lines(r.Lines)
	r.Blob, r.Sum, r.Size = c.blob(len(r.Blob)), Sum(text), int64(len(unified(text)))
	if !c.binary() {
		r.Context = excerpt(text)
	}
}

// excerpt returns the first of some lines, as a reference keeps them.
func excerpt(lines string) string {
	const most = 3
	end := 0
	for n := 0; n < most && end < len(lines); n++ {
		next := strings.IndexByte(lines[end:], '\n')
		if next < 0 {
			end = len(lines)
			break
		}
		end += next + 1
	}
	kept := strings.ToValidUTF8(unified(lines[:end]), "\ufffd")
	if len(kept) > maxContext {
		if last := strings.LastIndexByte(kept[:maxContext], '\n'); last > 0 {
			return kept[:last+1]
		}
	}
	return cut(kept, maxContext)
}

// addCommit adds what git says about the file. Without git, nothing is added.
func (r *Ref) addCommit(ctx context.Context, root string, c *content) {
	g, err := openGit(ctx, root)
	if err != nil || g.head == "" {
		return
	}
	r.Commit, r.Blob = g.head, c.blob(g.digits)
	past, err := g.objects()
	if err != nil {
		return
	}
	old, blob, err := past.read(inCommit(g.head, r.File))
	if err == nil && old != nil && blob != r.Blob && !c.binary() {
		if r.Diff = diffOf(old, c); len(r.Diff) > maxDiff {
			r.Diff = ""
		}
	}
	_ = past.Close()
}
