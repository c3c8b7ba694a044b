package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type findingRecord struct {
	Record     string `json:"record"`
	Context    string `json:"context,omitempty"`
	Kind       string `json:"kind"`
	Severity   string `json:"severity"`
	Path       string `json:"path,omitempty"`
	ID         string `json:"id,omitempty"`
	Detail     string `json:"detail"`
	Repairable bool   `json:"repairable"`
}

// summaryRecord ends what a verb says that looks at many things.
type summaryRecord struct {
	Record   string         `json:"record"`
	Contexts int            `json:"contexts"`
	Findings int            `json:"findings"`
	ByKind   map[string]int `json:"by_kind"`
}

// checkedRecord is the one of those that look at every message.
type checkedRecord struct {
	Record   string         `json:"record"`
	Contexts int            `json:"contexts"`
	Messages int64          `json:"messages"`
	Findings int            `json:"findings"`
	ByKind   map[string]int `json:"by_kind"`
}

func (a *app) checkCmd() *cobra.Command {
	var o ctxdir.CheckOptions
	cmd := &cobra.Command{
		Use:   "check [CONTEXT…]",
		Short: "Look whether everything is there and whole",
		Long: `Compare metadata, index, message files and blobs with each other. Nothing is changed, and others can go on writing. Without
--read-data a file that looks untouched is taken for whole; with it every byte is read. Without CONTEXT, the whole store.`,
		Example:           "  ctxtool check --read-data\n  ctxtool check 7c2f",
		Annotations:       exits("something is not as it should be", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				var err error
				if o.Contexts, o.All, err = chosen(s, args); err != nil {
					return err
				}
				return a.check(cmd.Context(), s, o)
			}, ctxdir.WithReadOnly())
		},
	}
	cmd.Flags().BoolVar(&o.ReadData, "read-data", false, "read every message and blob, whatever they look like")
	return cmd
}

func (a *app) check(ctx context.Context, s *ctxdir.Store, o ctxdir.CheckOptions) error {
	bar := a.newProgress("Checking")
	var last ctxdir.CheckProgress
	o.Progress = func(p ctxdir.CheckProgress) {
		last = p
		bar.steps("…"+ending(p.Context), p.Done, p.Of)
	}
	sum := checkedRecord{Record: "summary", ByKind: map[string]int{}}
	wrong, old := 0, 0
	for f, err := range s.Check(ctx, o) {
		bar.clear()
		if err != nil {
			return err
		}
		sum.Findings++
		sum.ByKind[f.Kind]++
		if f.Severity != "info" {
			wrong++
			if f.Kind == "legacy" {
				old++
			}
		}
		if a.json {
			err = a.record(findingRecord{
				"finding", idText(f.Context), f.Kind, f.Severity, f.Path, idText(f.ID), f.Detail, f.Repairable,
			})
		} else {
			err = a.tell(findingOf(f))
		}
		if err != nil {
			return err
		}
	}
	bar.clear()
	sum.Contexts, sum.Messages = last.Contexts, last.Messages
	if err := a.summary(
		sum,
		"%s in %s looked at",
		plural(int(sum.Messages), "message", "messages"),
		plural(sum.Contexts, "context", "contexts"),
	); err != nil {
		return err
	}
	if wrong == 0 {
		return nil
	}
	how := `"ctxtool repair --dry-run" says what can be mended`
	if old == wrong {
		how = "nothing mends a legacy context"
	}
	return &problemsError{text: plural(wrong, "problem", "problems"), hint: how}
}

// summary ends what a check or a repair prints: with a record, or a note for people.
func (a *app) summary(sum checkedRecord, format string, args ...any) error {
	if a.json {
		return a.record(sum)
	}
	a.note(format, args...)
	return nil
}

// told is a line of what a check found or a repair did.
type told struct{ severity, kind, where, detail string }

func findingOf(f ctxdir.Finding) told {
	t := told{f.Severity, f.Kind, cmp.Or(f.Path, idText(f.Context)), f.Detail}
	if f.Repairable {
		t.detail += " (repairable)"
	}
	return t
}

// tell prints one line, and on a terminal, where paths with ids in them leave no room for anything else, two.
func (a *app) tell(t told) error {
	colours := a.colours(a.out.w)
	style := map[string]string{"error": red, "warning": yellow}[t.severity]
	line := ""
	if t.severity != "" {
		line = colours.paint(style, fmt.Sprintf("%-7s", t.severity)) + "  "
	}
	line += colours.paint(bold, t.kind)
	detail := oneLine(strings.TrimPrefix(t.detail, t.where+": "))
	switch {
	case t.where == "":
		line += ": " + detail
	case a.onTerminal():
		line += ": " + detail + "\n  " + colours.paint(dim, oneLine(t.where))
	default:
		line += "  " + t.where + ": " + detail
	}
	return a.printf("%s\n", line)
}

// idText is an id, "" for none.
func idText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// ending is the end of an id, which tells more than its beginning: that is the time, and all ids of a day share most of it.
func ending(id uuid.UUID) string { return id.String()[24:] }

// chosen returns the contexts that arguments name. Without arguments, a verb is for all of the store.
func chosen(s *ctxdir.Store, refs []string) (ids []uuid.UUID, all bool, err error) {
	if len(refs) == 0 {
		return nil, true, nil
	}
	ids, err = contextsOf(s, refs)
	return ids, false, err
}
