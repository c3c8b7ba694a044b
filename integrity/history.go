package integrity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// history finds missing and damaged logs and segments, and those of other histories: another copy of the context, or
// another context, may have been copied over it.
func (x *examination) history(ctx context.Context) ([]problem, error) {
	return x.confirm(func() (problems []problem, err error) {
		all, parts, err := x.Index.Examine(ctx, x.ReadData)
		if err != nil {
			return nil, err
		}
		known := map[string]bool{}
		add := func(severity Severity, path, detail string) {
			p := repairable(KindLog, severity, path, detail)
			if strings.HasPrefix(path, ctxfolder.Segments+"/") || path == "" && strings.Contains(detail, "segment") {
				p.Kind = KindSegment
			}
			problems, known[path] = append(problems, p), true
		}
		for _, p := range all {
			add(SeverityError, pathOf(&p), describe(&p))
			problems[len(problems)-1].file = p.File
		}
		for _, p := range parts { // messages in them without another copy are lost, which is an error of its own
			add(SeverityWarning, pathOf(&p), p.Detail)
			problems[len(problems)-1].file = p.File
		}
		unlinked, err := x.Index.Unlinked()
		for _, path := range unlinked {
			if !known[path] {
				add(SeverityWarning, path, "it belongs to a divergent history")
			}
		}
		return problems, err
	})
}

// pathOf returns the path of a file of the history; empty if it is missing.
func pathOf(p *index.Problem) string {
	if _, log := journal.ParseName(p.File); !log && p.File != "" {
		return ctxfolder.Segments + "/" + p.File
	}
	return p.File
}

func describe(p *index.Problem) string {
	switch {
	case p.To >= p.From && p.From > 0:
		return fmt.Sprintf("records %d to %d: %s", p.From, p.To, p.Detail)
	case p.From > 0:
		return fmt.Sprintf("records from %d on: %s", p.From, p.Detail)
	}
	return p.Detail
}

// isBroken reports whether a problem is about a damaged or missing part of the history.
func (p *problem) isBroken() bool {
	return (p.Kind == KindLog || p.Kind == KindSegment) && (p.file != "" || p.Path == "")
}

// withLost says in the problems of the history how many messages are lost.
func (x *examination) withLost(broken []problem) []problem {
	for i := range broken {
		if broken[i].Severity == SeverityError && len(x.lost) > 0 {
			broken[i].Detail += fmt.Sprintf("; %d messages of the context are lost", len(x.lost))
		}
	}
	return broken
}

// dropFound drops the lost messages of which there is a file.
func (x *examination) dropFound() {
	x.lost = slices.DeleteFunc(x.lost, func(p problem) bool { return x.found[p.place] })
}

// inRuns makes one problem of lost messages in a row of which nothing but the positions are known.
func inRuns(lost []problem) (out []problem) {
	slices.SortStableFunc(lost, comparePlaces)
	for _, p := range lost {
		if n := len(out); n > 0 && p.ID == uuid.Nil && out[n-1].ID == uuid.Nil && out[n-1].line == p.line &&
			out[n-1].position+int64(out[n-1].several) == p.position && out[n-1].Severity == p.Severity {
			out[n-1].several++
			continue
		}
		p.several = 1
		out = append(out, p)
	}
	for i := range out {
		if p := &out[i]; p.several > 1 {
			p.Detail = fmt.Sprintf("positions %d to %d of line %s are lost", p.position, p.position+int64(p.several)-1, p.line)
		}
	}
	return out
}
