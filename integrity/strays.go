package integrity

import (
	"context"
	"fmt"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// strays finds journals of other histories: an older copy of the context, or another one, may have been copied over it.
func (x *examination) strays(ctx context.Context) error {
	return x.reportConfirmed(func() (problems []problem, err error) {
		strays, err := x.Log.Strays(ctx)
		for _, s := range strays {
			p := repairable(KindJournal, SeverityInfo, ctxfolder.JournalFile(s.Journal),
				"it belongs to another history, and the context has all its messages")
			p.stray = s.Journal
			switch {
			case s.Problem != nil:
				p.Severity, p.Detail = SeverityWarning, fmt.Sprintf("a damaged journal of another history: %v", s.Problem)
			case s.Hidden > 0:
				p.Severity = SeverityWarning
				p.Detail = fmt.Sprintf("it belongs to another history of the context; %d messages in it are not shown", s.Hidden)
			}
			problems = append(problems, p)
		}
		if err != nil {
			return nil, err
		}
		unknown, err := x.Log.UnknownLines(ctx)
		for line, hidden := range unknown {
			problems = append(problems, problem{line: line, several: int(hidden), Finding: Finding{
				Kind: KindForeign, Severity: SeverityWarning, Path: ctxfolder.MetadataFile,
				Detail: fmt.Sprintf("it lacks line %s; %d of its messages are not shown", line, hidden),
			}})
		}
		return problems, err
	})
}

// replaced finds journals of other histories in the places of the context's own folded ones.
func (x *examination) replaced() error {
	return x.reportConfirmed(func() (problems []problem, err error) {
		replaced, err := x.Log.ReplacedJournals()
		for _, gen := range replaced {
			p := repairable(KindJournal, SeverityWarning, ctxfolder.JournalFile(gen),
				"it belongs to another history of the context, and has replaced one of its journals")
			p.stray = gen
			problems = append(problems, p)
		}
		return problems, err
	})
}

// mendStray moves a journal of another history to the trash. The messages to adopt from it are committed by then.
func (r *repair) mendStray(p problem) error {
	if p.stray == 0 {
		return nil
	}
	if err := r.Log.TrashStray(p.stray); err != nil {
		return err
	}
	r.did(p, "moved to the trash; was: %s", p.Detail)
	return nil
}
