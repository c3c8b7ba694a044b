package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/reference"
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
	p, err := projectOf(ctx, in, s.project)
	if err != nil {
		return nil, err
	}
	for sum, err := range in.List(ctx, o) {
		if err != nil {
			return nil, err
		}
		if (every || slices.Contains(ids, sum.ID)) && p.has(sum.Labels, inProject) {
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

// project is a project as --project names it.
type project struct {
	name       string
	repository string                   // of the folder of this name
	here       func(path string) string // what a folder of another machine is on this one
}

// projectOf returns the project of a name; nil for none. The store may be missing.
func projectOf(ctx context.Context, s *ctxdir.Store, name string) (*project, error) {
	if name == "" {
		return nil, nil
	}
	var set ctxdir.Settings
	var err error
	if s != nil {
		set, err = s.Settings()
	}
	p := &project{name: name, here: set.Here}
	if info, serr := os.Stat(name); serr == nil && info.IsDir() {
		p.repository = importer.RepositoryName(reference.Repository(ctx, name))
	}
	return p, err
}

// has reports whether a context with these labels is of the project: by its folder, which is tells, or by its repository.
func (p *project) has(labels map[string]string, is func(label, name string) bool) bool {
	if p == nil {
		return true
	}
	label := labels[importer.LabelProject]
	return is(label, p.name) || is(p.here(label), p.name) ||
		p.repository != "" && labels[importer.LabelRepository] == p.repository
}

// inProject reports whether a label names a project, or a folder in it.
func inProject(label, project string) bool {
	if label == project {
		return true
	}
	dir, err := filepath.Abs(project)
	if err != nil {
		return false
	}
	return label == dir || strings.HasPrefix(label, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// projectImporter stores only the histories of a project, nil for all. It adds the repositories of their folders.
type projectImporter struct {
	importer.Store
	*project
	repositories map[string]string // of folders
}

// errOtherProject ends the import of a conversation that is not of the project.
var errOtherProject = errors.New("the conversation belongs to another project")

func (p projectImporter) Open(ctx context.Context, info importer.Info) (importer.Conversation, error) {
	if dir := info.Labels[importer.LabelProject]; filepath.IsAbs(dir) && info.Labels[importer.LabelRepository] == "" {
		name, known := p.repositories[dir]
		if !known {
			if at, err := os.Stat(dir); err == nil && at.IsDir() {
				name = importer.RepositoryName(reference.Repository(ctx, dir))
			}
			p.repositories[dir] = name
		}
		if name != "" {
			info.Labels = maps.Clone(info.Labels)
			info.Labels[importer.LabelRepository] = name
		}
	}
	if !p.has(info.Labels, inProject) {
		return nil, errOtherProject
	}
	return p.Store.Open(ctx, info)
}
