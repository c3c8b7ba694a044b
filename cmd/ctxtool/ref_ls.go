package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/spf13/cobra"
)

type refFlags struct {
	branch, role, text, root string
	stored, summary, lines   bool
}

func (f *refFlags) rootFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.root, "root", "", "look for files in `DIR` instead of the git working tree or the current folder")
	_ = cmd.MarkFlagDirname("root")
}

// workspaceRoot is the root of the workspace, as an absolute path.
func (f *refFlags) workspaceRoot() (string, error) {
	if f.root == "" {
		here, err := os.Getwd()
		return reference.FindRoot(here), err
	}
	return filepath.Abs(f.root)
}

// refSummary counts references and copies of code on a branch.
type refSummary struct {
	Record          string  `json:"record"`
	Context         string  `json:"context"`
	Branch          string  `json:"branch"`
	Messages        int64   `json:"messages"`
	Stored          int     `json:"stored"`   // references
	Computed        int     `json:"computed"` // references that tool calls imply
	ReferenceBytes  int64   `json:"reference_bytes"`
	ReferencedBytes int64   `json:"referenced_bytes"` // the lines that stored references stand for
	CopiedBytes     int64   `json:"copied_bytes"`     // of lines of files in messages
	DuplicateBytes  int64   `json:"duplicate_bytes"`  // of those, lines that an earlier message has or refers to
	Ratio           float64 `json:"ratio"`            // referenced_bytes / (referenced_bytes + copied_bytes)

	seen map[string]bool // sums of lines
}

func (a *app) refLsCmd() *cobra.Command {
	var f refFlags
	cmd := &cobra.Command{
		Use:   "ls CONTEXT",
		Short: "List the references of a conversation",
		Long: `List the references of a branch: those stored with messages, and those that tool calls and their
results imply. Paths are relative to the root, or to the folder in which an imported conversation
took place; files outside are left out.

--summary prints sizes instead. RATIO is the share of the code that the conversation refers to
instead of copying it: the bytes of referenced lines, divided by the bytes of referenced and
copied lines.`,
		Example: `  ctxtool ref ls 7c2f --stored
  ctxtool ref ls 7c2f --summary`,
		Annotations:       exits("a message cannot be read", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: a.onContext(func(ctx context.Context, c *ctxdir.Context, _ []string) error {
			return a.listReferences(ctx, c, &f)
		}, ctxdir.Options{ReadOnly: true}),
	}
	f.listFlags(a, cmd)
	cmd.Flags().BoolVar(&f.summary, "summary", false, "print how much code is referred to, and how much is copied")
	return cmd
}

func (f *refFlags) listFlags(a *app, cmd *cobra.Command) {
	a.branchFlag(cmd, &f.branch, "branch", "look at `BRANCH` instead of the active one")
	cmd.Flags().BoolVar(&f.stored, "stored", false, "list only references stored with messages, not those of tool calls")
	f.rootFlag(cmd)
}

// messageReferences are the references of one message.
type messageReferences struct {
	*ctxdir.Message
	refs []reference.Ref
}

// eachReferences calls each for the messages of a branch, and returns the branch and the messages that cannot be read.
func (f *refFlags) eachReferences(ctx context.Context, a *app, c *ctxdir.Context, each func(m messageReferences) error) (string, error) {
	b, err := branchOf(c, f.branch)
	if err != nil {
		return "", err
	}
	root, err := f.workspaceRoot()
	if err != nil {
		return "", err
	}
	folders := []string{root}
	if project := c.Metadata().Labels["project"]; project != "" {
		folders = append(folders, project)
	}
	unread := 0
	err = eachMessage(ctx, b, 0, math.MaxInt64, func(m *ctxdir.Message) error {
		of := reference.Of
		if f.stored {
			of = func(_ context.Context, m *ctxdir.Message, _ ...string) ([]reference.Ref, error) {
				return reference.Stored(m)
			}
		}
		refs, err := of(ctx, m, folders...)
		if err != nil {
			a.warn(errorRecord{Error: fmt.Sprintf("message %d: %v", m.Position, err)})
		}
		if err != nil || m.Unavailable != nil {
			unread++
		}
		return each(messageReferences{m, refs})
	})
	if err == nil && unread > 0 {
		err = problems("", "failed to read references of %s", plain.Count(unread, "message"))
	}
	return b.Name(), err
}

func (a *app) listReferences(ctx context.Context, c *ctxdir.Context, f *refFlags) error {
	s := refSummary{Record: "summary", Context: c.ID().String(), seen: map[string]bool{}}
	t := term.Table{Head: []string{"#", "FILE", "LINES", "SIZE", "FROM", "COMMIT"}, Right: []int{0, 3}, Shrink: []int{1}, Ends: []int{1}}
	branch, err := branchOf(c, f.branch)
	if err != nil {
		return err
	}
	a.page()
	_, listErr := f.eachReferences(ctx, a, c, func(m messageReferences) error {
		s.add(m)
		for i := range m.refs {
			r := referenceRecord(c, branch.Name(), m.Message, &m.refs[i])
			if f.summary {
				continue
			}
			if a.json {
				if err := a.record(r); err != nil {
					return err
				}
				continue
			}
			t.Add(nil, fmt.Sprint(m.Position), r.File, m.refs[i].Lines.String(), sizeOrNone(r.Size), r.Origin, shortHash(r.Commit))
		}
		return nil
	})
	s.Branch = branch.Name()
	if all := s.ReferencedBytes + s.CopiedBytes; all > 0 {
		s.Ratio = math.Round(1000*float64(s.ReferencedBytes)/float64(all)) / 1000
	}
	switch {
	case f.summary && a.json:
		err = a.record(s)
	case f.summary:
		err = a.printSummary(&s)
	case t.Len() > 0:
		err = a.printTable(&t)
	case !a.json:
		a.note("no references")
	}
	if err != nil {
		return err
	}
	return listErr
}

func (a *app) printSummary(s *refSummary) error {
	return a.printf("%s, for %s of code\n%s of tools; messages copy %s of code, %s of it again\nratio %.3f\n",
		plain.Count(s.Stored, "stored reference")+" of "+plain.Size(s.ReferenceBytes), plain.Size(s.ReferencedBytes),
		plain.Count(s.Computed, "reference"), plain.Size(s.CopiedBytes), plain.Size(s.DuplicateBytes), s.Ratio)
}

// add counts the references of a message.
func (s *refSummary) add(m messageReferences) {
	s.Messages++
	s.ReferenceBytes += int64(len(m.References))
	for i := range m.refs {
		switch r := &m.refs[i]; {
		case !r.Computed:
			s.Stored++
			s.ReferencedBytes += r.Size
			s.seen[r.Sum] = true
		default:
			s.Computed++
			s.CopiedBytes += r.Size
			if s.seen[r.Sum] {
				s.DuplicateBytes += r.Size
			}
			s.seen[r.Sum] = true
		}
	}
}

func referenceRecord(c *ctxdir.Context, branch string, m *ctxdir.Message, r *reference.Ref) record.Reference {
	rec := record.OfReference(c, branch, m, r)
	rec.Record = "reference"
	return rec
}

func sizeOrNone(n int64) string {
	if n == 0 {
		return ""
	}
	return plain.Size(n)
}

// shortHash is the beginning of a hash of git.
func shortHash(hash string) string { return hash[:min(len(hash), 8)] }
