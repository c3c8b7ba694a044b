package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// selection is the contexts of a store that a verb works on: those with these labels, or those of a project.
type selection struct {
	project string
	labels  labelFlags
}

// flags adds the flags of a selection. verb says what the verb does with contexts.
func (s *selection) flags(cmd *cobra.Command, verb string) {
	cmd.Flags().StringVar(&s.project, "project", "", verb+" contexts of the project in the folder `PROJECT`")
	s.labels.add(cmd, verb+" contexts with the label `KEY=VALUE`; can be repeated")
}

func (s *selection) given() bool { return s.project != "" || len(s.labels.set) > 0 }

// list returns the contexts among those that arguments name, the oldest first. Without arguments it selects from all
// contexts without a kind.
func (s *selection) list(ctx context.Context, in *ctxdir.Store, refs []string) (all []ctxdir.Summary, err error) {
	ids, every, err := selectContexts(in, refs)
	if err != nil {
		return nil, err
	}
	o := ctxdir.ListOptions{Order: ctxdir.OrderCreated, Reverse: true}
	if !every {
		o.Kind = "*"
	}
	if o.Labels, err = s.labels.parse(nil); err != nil {
		return nil, err
	}
	for sum, err := range in.List(ctx, o) {
		if err != nil {
			return nil, err
		}
		if (every || slices.Contains(ids, sum.ID)) && inProject(sum.Labels["project"], s.project) {
			all = append(all, sum)
		}
	}
	return all, nil
}

// ids returns the ids of the selection, or of the contexts that arguments name if there are no conditions.
func (s *selection) ids(ctx context.Context, in *ctxdir.Store, refs []string) (ids []uuid.UUID, err error) {
	if !s.given() {
		return contextsOf(in, refs)
	}
	all, err := s.list(ctx, in, refs)
	for _, sum := range all {
		ids = append(ids, sum.ID)
	}
	return ids, err
}

// inProject reports whether a label names a project, or a folder in it. Every label is in no project.
func inProject(label, project string) bool {
	if project == "" || label == project {
		return true
	}
	dir, err := filepath.Abs(project)
	if err != nil {
		return false
	}
	return label == dir || strings.HasPrefix(label, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// projectImporter stores only the histories of a project, "" for all.
type projectImporter struct {
	importer.Store
	project string
}

// errOtherProject ends the import of a conversation that is not of the project.
var errOtherProject = errors.New("the conversation belongs to another project")

func (p projectImporter) Open(ctx context.Context, info importer.Info) (importer.Conversation, error) {
	if !inProject(info.Labels[importer.LabelProject], p.project) {
		return nil, errOtherProject
	}
	return p.Store.Open(ctx, info)
}
