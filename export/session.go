package export

import (
	"context"
	"iter"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/transcript"
)

// A session file of Claude Code has all branches of a conversation, in the order in which their records were written.
// An import separates the branches; sessionFile joins them.

// sessionFile is the imported session that an export writes.
type sessionFile struct {
	branches []*sessionBranch
	named    map[string]*sessionBranch
}

// sessionBranch is a branch while its own messages are read.
type sessionBranch struct {
	info ctxdir.BranchInfo
	next func() (*ctxdir.Message, error, bool)
	stop func()
	head *ctxdir.Message // the next message, nil at the end
	at   time.Time       // of the head, or of the one before if it has none
	read int64           // the position of the head
}

// sessionMessages yields the messages of all branches that have only records of Claude Code, each once. Those of a branch stay
// in order; the branches take turns by the times of their records. The active branch is among them in any case.
func sessionMessages(ctx context.Context, c *ctxdir.Context) iter.Seq2[*ctxdir.Message, error] {
	return func(yield func(*ctxdir.Message, error) bool) {
		f, err := openSession(ctx, c)
		defer f.close()
		for err == nil {
			b := f.earliest()
			if b == nil {
				return
			}
			if !yield(b.head, nil) {
				return
			}
			err = b.advance()
		}
		yield(nil, err)
	}
}

func openSession(ctx context.Context, c *ctxdir.Context) (*sessionFile, error) {
	f := &sessionFile{named: map[string]*sessionBranch{}}
	all, err := c.Branches(ctx)
	if err != nil {
		return f, err
	}
	for _, info := range all {
		b, err := c.Branch(info.Name)
		if err != nil {
			return f, err
		}
		from := info.Shared
		if f.named[info.From] == nil {
			from = 0 // the branch with the first messages is left out
		}
		if !info.Active {
			whole, err := isSession(ctx, b, from)
			if err != nil {
				return f, err
			}
			if !whole {
				continue
			}
		}
		s := &sessionBranch{info: info, read: from - 1}
		s.next, s.stop = iter.Pull2(b.Messages(ctx, from, ctxdir.End))
		f.branches = append(f.branches, s)
		f.named[info.Name] = s
		if err := s.advance(); err != nil {
			return f, err
		}
	}
	return f, nil
}

// isSession reports whether the messages of a branch are records of Claude Code, and not what somebody appended.
func isSession(ctx context.Context, b *ctxdir.Branch, from int64) (bool, error) {
	for m, err := range b.Messages(ctx, from, ctxdir.End) {
		if err != nil || m.Unavailable == nil && !transcript.IsClaude(m.Stored) && m.Role != "" {
			return false, err
		}
	}
	return true, nil
}

// advance reads the next message.
func (s *sessionBranch) advance() (err error) {
	s.head, err, _ = s.next()
	s.read++
	if s.head != nil && !s.head.CreatedAt.IsZero() {
		s.at = s.head.CreatedAt
	}
	return err
}

// earliest is the branch whose head comes next, nil at the end.
func (f *sessionFile) earliest() (next *sessionBranch) {
	for _, s := range f.branches {
		if s.head == nil || f.reach(f.named[s.info.From]) < s.info.Shared && f.named[s.info.From] != nil {
			continue
		}
		if next == nil || s.at.Before(next.at) {
			next = s
		}
	}
	return next
}

// reach is up to which position the messages of a branch were read, also those that it inherits.
func (f *sessionFile) reach(s *sessionBranch) int64 {
	if s == nil {
		return 0
	}
	if parent := f.named[s.info.From]; parent != nil && s.read <= s.info.Shared {
		return min(f.reach(parent), s.info.Shared)
	}
	return s.read
}

func (f *sessionFile) close() {
	for _, s := range f.branches {
		s.stop()
	}
}

// isImportOf reports whether a context was imported from a tool.
func isImportOf(m *ctxdir.Metadata, tool importer.Format) bool {
	return m.Labels["tool"] == string(tool)
}
