package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/importer/opencodedb"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/google/uuid"
	"github.com/rivo/uniseg"
)

type importedRecord struct {
	Record   string `json:"record"`
	Path     string `json:"path"`
	Format   string `json:"format"`
	Context  string `json:"context"`
	Title    string `json:"title,omitempty"`
	Branches int    `json:"branches"`
	Messages int64  `json:"messages"`
	Added    int64  `json:"added"`
	Skipped  int64  `json:"skipped"`
	Problems int64  `json:"problems"`
	Tool     string `json:"tool"`
	Replaced int64  `json:"replaced"`
	SameAs   string `json:"same_as,omitempty"` // the context that begins with the same records
}

type importSummary struct {
	Record   string `json:"record"`
	Files    int    `json:"files"`
	Contexts int    `json:"contexts"`
	Messages int64  `json:"messages"`
	Added    int64  `json:"added"`
	Skipped  int64  `json:"skipped"`
	Failed   int    `json:"failed"`
	Problems int64  `json:"problems"`
	Replaced int64  `json:"replaced"`
	Passed   int    `json:"passed_over"` // files in folders whose names are not those of histories
	Same     int    `json:"unchanged"`   // files that did not change since an earlier import, and were not read
	Others   int    `json:"other_projects,omitempty"`
}

// importRun is one run of the verb.
type importRun struct {
	a        *app
	format   importer.Format
	into     projectImporter
	progress *term.Progress
	sum      importSummary
	contexts map[uuid.UUID]bool
	short    *growingIDs
	begins   map[uuid.UUID]uuid.UUID // contexts by their first record
	firstErr error
	target   *importTarget
	live     *liveImport // of --follow, else nil
	paths    []string    // that the caller named
}

// newImportRun returns a run that imports into a store.
func newImportRun(a *app, target *importTarget, format importer.Format) *importRun {
	return &importRun{
		a: a, target: target, format: format, into: projectImporter{Store: target, repositories: map[string]string{}},
		contexts: map[uuid.UUID]bool{}, begins: map[uuid.UUID]uuid.UUID{},
	}
}

// files imports every file under the paths. An error ends the run.
func (i *importRun) files(ctx context.Context, paths []string) error {
	for _, path := range paths {
		for file, err := range importer.Walk(path, func(string) { i.sum.Passed++ }) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := i.found(ctx, file, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// found imports a file that the walk found, or reports why the walk failed on it.
func (i *importRun) found(ctx context.Context, path string, err error) error {
	isNew := i.live == nil || i.live.isNew(path)
	beside := false
	if err != nil {
		err = i.failed(path, err)
	} else {
		beside, err = i.file(ctx, path)
	}
	if isNew && !beside {
		i.sum.Files++
	}
	return err
}

// file imports a file. It passes over one that belongs to the histories of a folder but holds no messages, unless the
// caller named it.
func (i *importRun) file(ctx context.Context, path string) (beside bool, err error) {
	i.progress.File(path)
	failed := false
	options := importer.Options{
		Format: i.format, Progress: i.progress.Bytes, Database: opencodedb.Read, Growing: i.live != nil, Known: i.target,
		Problem: func(p importer.Problem) {
			if i.live != nil && !i.live.isNews(p) {
				return
			}
			i.sum.Problems++
			i.progress.Clear()
			i.a.warn(errorRecord{Path: p.Path, Line: p.Line, Error: p.Reason})
		},
	}
	for r, err := range importer.Import(ctx, i.into, path, options) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if look := (*importer.UnknownError)(nil); errors.As(err, &look) && look.Beside && !slices.Contains(i.paths, path) {
			return true, nil
		}
		if errors.Is(err, errOtherProject) {
			i.sum.Others++
			continue
		}
		if r.Unchanged {
			i.sum.Same++
			continue
		}
		var perr error
		if r.Context != uuid.Nil {
			perr = i.imported(r)
		}
		if perr == nil && err != nil {
			if failed {
				i.sum.Failed-- // counted once per file
			}
			failed = true
			perr = i.failed(path, err)
		}
		if perr != nil {
			return false, perr
		}
		if err != nil && (fatal(err) || i.target.err != nil) {
			return false, err
		}
	}
	return false, nil
}

func (i *importRun) imported(r importer.Result) error {
	i.sum.Added, i.sum.Replaced = i.sum.Added+r.Added, i.sum.Replaced+r.Replaced
	if i.live != nil && i.live.again && i.contexts[r.Context] {
		i.sum.Messages += r.Added // the others were counted before
		if r.Added+r.Replaced == 0 {
			return nil
		}
	} else {
		i.sum.Messages, i.sum.Skipped = i.sum.Messages+r.Messages, i.sum.Skipped+r.Skipped
	}
	i.contexts[r.Context] = true
	i.progress.Clear()
	same := uuid.Nil
	if other, ok := i.begins[r.First]; !ok {
		i.begins[r.First] = r.Context
	} else if other != r.Context && r.First != uuid.Nil {
		same = other
	}
	if i.a.json {
		return i.a.record(importedRecord{
			"imported", r.Path, string(r.Format), r.Context.String(), r.Title, r.Branches, r.Messages, r.Added, r.Skipped, r.Problems,
			string(r.Format), r.Replaced, record.ID(same),
		})
	}
	what := plain.Count(r.Added, "message")
	if r.Skipped > 0 {
		what += fmt.Sprintf(" (%s already stored)", plain.Number(r.Skipped))
	}
	if r.Replaced > 0 {
		what += fmt.Sprintf(", %s replaced", plain.Number(r.Replaced))
	}
	if r.Branches > 1 {
		what += fmt.Sprintf(", %d branches", r.Branches)
	}
	if same != uuid.Nil {
		what += ", begins like " + i.short.of(same)
	}
	return i.a.printf("%s\n", i.a.importLine(i.short.of(r.Context), what, cmp.Or(plain.OneLine(r.Title), "(no title)"), plain.OneLine(r.Path)))
}

// importLine is the line of an imported conversation. In a narrow terminal the path gives way to the title.
func (a *app) importLine(id, what, title, path string) string {
	line := fmt.Sprintf("%s  %14s  ", id, what)
	room := math.MaxInt
	if a.out.Columns() > 0 {
		room = max(a.out.Columns()-uniseg.StringWidth(line), term.MinWidth)
	}
	title = plain.Shorten(title, room)
	if room -= uniseg.StringWidth(title) + len("  "); room < term.NameWidth {
		return line + title
	}
	return line + title + "  " + plain.ShortenFront(path, room)
}

// failed reports a file that was not imported, or only in part.
func (i *importRun) failed(path string, err error) error {
	if i.live != nil && !i.live.failed(path, err) {
		return nil
	}
	i.sum.Failed++
	if i.firstErr == nil {
		i.firstErr = err
	}
	i.progress.Clear()
	return i.a.fileFailed(path, err, err)
}

func (i *importRun) printSummary() error {
	if i.a.json {
		return i.a.record(i.sum)
	}
	s := i.sum
	text := fmt.Sprintf("%s from %s: %s",
		plain.Count(s.Contexts, "context"), plain.Count(s.Files, "file"), plain.Count(s.Added, "new message"))
	if s.Skipped > 0 {
		text += fmt.Sprintf(", %s already stored", plain.Number(s.Skipped))
	}
	if s.Replaced > 0 {
		text += fmt.Sprintf(", %s replaced", plain.Number(s.Replaced))
	}
	if s.Same > 0 {
		text += ", " + plain.Count(s.Same, "file") + " unchanged"
	}
	if s.Passed > 0 {
		text += fmt.Sprintf(", passed over %s with other names", plain.Count(s.Passed, "file"))
	}
	if s.Others > 0 {
		text += ", left out " + plain.Count(s.Others, "conversation") + " of other projects"
	}
	if s.Failed > 0 {
		text += ", failed on " + plain.Count(s.Failed, "file")
	}
	return i.a.printf("%s\n", text)
}
