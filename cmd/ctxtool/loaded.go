package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

// maxParsedBody bounds the body of a message that a verb parses, in bytes: parsing needs several times as much memory.
const maxParsedBody = 64 << 20

// incompleteCount counts unavailable and incomplete messages. Erased messages do not count: they were removed on
// purpose.
type incompleteCount struct {
	messages int
	large    bool  // a message is too large to parse
	refused  error // the system refused to read a message
}

func (l *incompleteCount) add(m *record.Loaded) bool {
	if m.Unavailable == nil && m.Missing == nil || isErased(m) {
		return false
	}
	l.messages++
	if err := cmp.Or(m.Unavailable, m.Missing); refused(err) {
		l.refused = err
	}
	l.large = l.large || errors.Is(m.Missing, ctxdir.ErrTooLarge)
	return true
}

func isErased(m *record.Loaded) bool { return errors.Is(m.Unavailable, ctxdir.ErrErased) }

// err is nil if all messages are complete.
func (l *incompleteCount) err(context uuid.UUID) error {
	if l.messages == 0 {
		return nil
	}
	advice := fmt.Sprintf("run %q", strings.TrimSpace("ctxtool repair "+record.ID(context)))
	switch {
	case l.refused != nil:
		advice = hint(l.refused)
	case l.large:
		advice = fmt.Sprintf(`run "ctxtool --json show %s" for messages of any size, and --save-attachments DIR for their files`, context)
	}
	return problems(advice, "failed to read %s completely", plain.Count(l.messages, "message"))
}
