package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/spf13/cobra"
)

// checkedRecord is a reference, and where its lines are now.
type checkedRecord struct {
	record.Reference
	Status     reference.Status `json:"status"`
	Now        *placeRecord     `json:"now,omitempty"`
	Note       string           `json:"note,omitempty"`
	Text       string           `json:"text,omitempty"`
	Fallback   string           `json:"fallback,omitempty"`
	LastCommit string           `json:"last_commit,omitempty"`
	LastSeen   *time.Time       `json:"last_seen,omitempty"`
}

// placeRecord is the place of lines that were found.
type placeRecord struct {
	File  string  `json:"file"`
	Lines []int64 `json:"lines,omitempty"`
	Blob  string  `json:"blob"`
}

type checkedSummary struct {
	Record     string                   `json:"record"`
	References int                      `json:"references"`
	ByStatus   map[reference.Status]int `json:"by_status"`
}

func (a *app) refCheckCmd() *cobra.Command {
	var f refFlags
	cmd := &cobra.Command{
		Use:   "check CONTEXT",
		Short: "Find the lines of references in their files",
		Long: `Compare the references of a branch with the files below the root:

  found       the same lines at the same place
  shifted     the same lines at another place of the file
  modified    the file no longer contains these lines
  moved       the file has another path
  not_found   the file is missing or cannot be read

Git helps to find renamed files and the earlier content of lines; without git, only files are
compared. --lines prints the lines as they are now or, if they are missing, as they were.`,
		Example: `  ctxtool ref check 7c2f
  ctxtool ref check 7c2f --stored --lines`,
		Annotations:       exits("some lines changed or are missing", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: a.onContext(func(ctx context.Context, c *ctxdir.Context, _ []string) error {
			return a.checkReferences(ctx, c, &f)
		}, ctxdir.Options{ReadOnly: true}),
	}
	f.listFlags(a, cmd)
	cmd.Flags().BoolVar(&f.lines, "lines", false, "print the lines, too")
	return cmd
}

func (a *app) checkReferences(ctx context.Context, c *ctxdir.Context, f *refFlags) error {
	var refs []reference.Ref
	var of []*ctxdir.Message
	branch, err := f.eachReferences(ctx, a, c, func(m messageReferences) error {
		for _, r := range m.refs {
			refs, of = append(refs, r), append(of, &ctxdir.Message{ID: m.ID, Position: m.Position})
		}
		return nil
	})
	if branch == "" {
		return err
	}
	root, rerr := f.workspaceRoot()
	if rerr != nil {
		return rerr
	}
	all, rerr := reference.Resolve(ctx, root, refs)
	if rerr != nil {
		return rerr
	}
	a.page()
	t := term.Table{Head: []string{"#", "STATUS", "FILE", "LINES", "NOTE"}, Right: []int{0}, Shrink: []int{4, 2}, Ends: []int{2}}
	sum := checkedSummary{"summary", len(all), map[reference.Status]int{}}
	for i := range all {
		r := &all[i]
		sum.ByStatus[r.Status]++
		if a.json {
			if err := a.record(checkedRecordOf(referenceRecord(c, branch, of[i], &refs[i]), r, f.lines)); err != nil {
				return err
			}
			continue
		}
		t.Add(nil, fmt.Sprint(of[i].Position), string(r.Status), r.File, r.Lines.String(), r.Note)
		t.Style(1, statusStyle(r.Status))
	}
	if rerr = a.printChecked(&t, all, &sum, f.lines); rerr != nil {
		return rerr
	}
	if n := sum.ByStatus[reference.Modified] + sum.ByStatus[reference.NotFound]; n > 0 {
		advice := "add --lines to see them"
		if f.lines {
			advice = ""
		}
		return problems(advice, "the lines of %d of %s changed or are missing", n, plain.Count(len(all), "reference"))
	}
	return err
}

// printChecked prints what follows the records, or the whole table for people.
func (a *app) printChecked(t *term.Table, all []reference.Resolution, sum *checkedSummary, lines bool) error {
	switch {
	case a.json:
		return a.record(sum)
	case len(all) == 0:
		a.note("no references")
		return nil
	case !lines:
		return a.printTable(t)
	}
	paint := a.out.Colours()
	for i := range all {
		r := &all[i]
		at := reference.Ref{File: r.File, Lines: r.Lines}
		head := fmt.Sprintf("%s  %s", paint.Paint(statusStyle(r.Status), string(r.Status)), plain.OneLine(at.String()))
		if r.Note != "" {
			head += paint.Paint(term.Dim, "  "+plain.OneLine(r.Note))
		}
		text := r.Text
		if text == "" {
			text = r.Fallback
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if err := a.printf("%s\n%s\n", head, shiftRight(text)); err != nil {
			return err
		}
	}
	return nil
}

func shiftRight(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	return b.String()
}

func statusStyle(s reference.Status) string {
	switch s {
	case reference.Modified:
		return term.Yellow
	case reference.NotFound:
		return term.BoldRed
	}
	return ""
}

func checkedRecordOf(rec record.Reference, r *reference.Resolution, lines bool) checkedRecord {
	c := checkedRecord{Reference: rec, Status: r.Status, Note: r.Note, Fallback: r.Fallback, LastCommit: r.LastCommit}
	if r.Status != reference.NotFound {
		c.Now = &placeRecord{r.File, record.Lines(r.Lines), r.Blob}
	}
	if lines {
		c.Text = r.Text
	}
	if !r.LastSeen.IsZero() {
		c.LastSeen = &r.LastSeen
	}
	return c
}
