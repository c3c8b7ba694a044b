package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Some file systems and copy programs write names in upper case, or compose their characters in another way. Only a
// file system that compares names like that finds such a file.

// wrongName is a file or folder whose name is spelled in another way.
type wrongName struct {
	path, right string
	taken       bool // something else has the right name
}

// parent is the folder of the right name.
func (m *wrongName) parent() string {
	if i := strings.LastIndexByte(m.right, '/'); i >= 0 {
		return m.right[:i]
	}
	return "."
}

// names walks the entries below a folder.
type names struct {
	ctx context.Context
	fs  vfs.FS
	// right returns the right name of an entry in a folder, "" for an unknown entry.
	right func(folder, name string) string
	// wrong receives each wrongName entry, folder by folder, and returns its path from then on.
	wrong func(wrongName) (path string, err error)
}

// walk walks a folder, whose right path is right.
func (n *names) walk(folder, right string) error {
	type inside struct{ path, right string }
	var wrong []wrongName
	var folders []inside
	for e, err := range n.fs.ReadDir(folder) {
		if err == nil {
			err = n.ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrNotFolder) || errors.Is(err, fs.ErrPermission) {
			break // moved meanwhile, not a folder, or reported by the code that needs it
		}
		if err != nil {
			return err
		}
		name := n.right(right, e.Name())
		if name == "" || !e.IsDir() && !e.Type().IsRegular() || name == e.Name() && name == ctxfolder.Trash {
			continue // entries of the trash have other names
		}
		if name != e.Name() {
			wrong = append(wrong, wrongName{path: below(folder, e.Name()), right: below(folder, name)})
		}
		if e.IsDir() {
			folders = append(folders, inside{below(folder, e.Name()), below(right, name)})
		}
	}
	for _, m := range wrong {
		// Where the file system treats both names as one, nothing is wrong.
		if there, err := n.fs.Lstat(m.right); err == nil {
			if info, err := n.fs.Lstat(m.path); err != nil || vfs.SameFile(info, there) {
				continue
			}
			m.taken = true
		}
		now, err := n.wrong(m)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(folders, func(f inside) bool { return f.path == m.path }); i >= 0 {
			folders[i].path = now
		}
	}
	for _, f := range folders {
		if err := n.walk(f.path, f.right); err != nil {
			return err
		}
	}
	return nil
}

func below(folder, name string) string {
	if folder == "." {
		return name
	}
	return folder + "/" + name
}

// rename gives an entry its right name, durably. If another folder has a folder's right name, rename moves the entries
// there. done is false if an entry keeps its wrong name because the right one is taken.
//
// Crash order: no rename replaces anything, so every entry has one of the two names.
func rename(fsys vfs.FS, m wrongName) (done bool, err error) {
	err = fsys.RenameNew(m.path, m.right)
	if errors.Is(err, fs.ErrExist) {
		return merge(fsys, m)
	}
	if err != nil {
		return false, err
	}
	return true, fsys.SyncDir(m.parent())
}

func merge(fsys vfs.FS, m wrongName) (done bool, err error) {
	for _, path := range []string{m.path, m.right} {
		if info, err := fsys.Lstat(path); err != nil || !info.IsDir() {
			return false, err
		}
	}
	var inside []string
	for e, err := range fsys.ReadDir(m.path) {
		if err != nil {
			return false, err
		}
		inside = append(inside, e.Name())
	}
	done = true
	for _, name := range inside {
		err := fsys.RenameNew(m.path+"/"+name, m.right+"/"+name)
		if done = done && err == nil; err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	}
	if err := fsys.SyncDir(m.right); err != nil || !done {
		return false, err
	}
	if err := fsys.Remove(m.path); err != nil {
		return false, err
	}
	return true, fsys.SyncDir(m.parent())
}

// names reports misspelled names in a context's folder, except those of message files, which are checked one by one.
func (x *examination) names(ctx context.Context) error {
	return x.eachWrongName(ctx, false, func(m wrongName) (string, error) { return m.path, x.report(nameProblem(m)) })
}

func nameProblem(m wrongName) problem {
	p := repairable(KindName, SeverityError, m.path, "its name is "+path.Base(m.right))
	p.found = m.path
	return p
}

// eachWrongName calls wrong for each misspelled name whose right name is free; files includes message files.
func (x *examination) eachWrongName(ctx context.Context, files bool, wrong func(m wrongName) (string, error)) error {
	folders := sync.OnceValue(func() func(string) string { return rightFolders(x.Dir) }) // metadata.json gets its name first
	n := names{ctx: ctx, fs: x.Dir.FS, wrong: func(m wrongName) (string, error) {
		if m.taken {
			return m.path, nil
		}
		return wrong(m)
	}, right: func(folder, name string) string {
		if folder != ctxfolder.Messages {
			return rightName(folder, name)
		}
		right := folders()(name)
		if right == name && !files {
			return ""
		}
		return right
	}}
	return n.walk(".", ".")
}

// contextNames are the names in a context's folder, except those of journals.
var contextNames = []string{
	ctxfolder.MetadataFile,
	ctxfolder.IndexFile,
	ctxfolder.ErasingFile,
	ctxfolder.RowsFolder,
	ctxfolder.Archive,
	ctxfolder.Messages,
	ctxfolder.Trash,
}

// rightName is the right name of an entry in a context's folder.
func rightName(folder, name string) string {
	lower := strings.ToLower(name)
	var ours bool
	switch folder {
	case ".":
		_, ours = ctxfolder.ParseJournalFile(lower)
		ours = ours || slices.Contains(contextNames, lower)
	case ctxfolder.RowsFolder:
		_, _, ours = ctxfolder.ParseRowsFile(lower)
	case ctxfolder.Archive:
		_, ours = archive.ParseFileName(lower)
	default:
		_, ours = ctxfolder.ParseMessageFile(lower)
		ours = ours && strings.HasPrefix(folder, ctxfolder.Messages+"/")
	}
	if !ours {
		return ""
	}
	return lower
}

// rightFolders returns a function for the right name of a folder in messages/: that of a line's folder, if alike.
func rightFolders(dir *ctxfolder.Dir) func(name string) string {
	m, _, err := dir.ReadMetadata()
	if err != nil {
		m = &ctxfolder.Metadata{}
	}
	return func(name string) string {
		right := ""
		for i := range m.Lines {
			switch folder := m.Lines[i].Folder; {
			case folder == name:
				return name
			case branch.Alike(folder, name):
				right = folder
			}
		}
		if lower := strings.ToLower(name); right == "" && !ctxfolder.ValidFolder(name) && ctxfolder.ValidFolder(lower) {
			return lower
		}
		return cmp.Or(right, name)
	}
}

// mendNames gives every entry of the context its right name. It runs first, since a missing file may have another name.
// planned reports that a dry run would rename something, so that the rest is unknown yet.
func (r *repair) mendNames(ctx context.Context) (planned bool, err error) {
	some := false
	err = r.eachWrongName(ctx, !r.opts.DryRun, func(m wrongName) (string, error) {
		if some = true; r.opts.DryRun {
			r.didName(m, "would be renamed to ")
		}
		return m.path, nil
	})
	if err == nil && some && !r.opts.DryRun {
		err = r.locked(ctx, func() error {
			return r.eachWrongName(ctx, true, func(m wrongName) (string, error) {
				done, err := rename(r.Dir.FS, m)
				if err != nil || !done {
					return m.path, err
				}
				r.didName(m, "renamed to ")
				return m.right, nil
			})
		})
		r.Dir.ForgetFolders()
	}
	if err != nil {
		return false, err
	}
	return some && r.opts.DryRun, r.reportDone()
}

func (r *repair) didName(m wrongName, what string) {
	p := nameProblem(m)
	if _, file := ctxfolder.ParseMessageFile(path.Base(m.right)); file {
		p.Kind = KindMisplaced
	}
	p.Path = r.Dir.ID.String() + "/" + p.Path
	r.did(p, "%s", what+m.right)
}

// storeFolders are the folders of a store whose content counts: locks are empty, and staging is unfinished.
var storeFolders = []string{blob.Folder, ctxfolder.Trash}

// names reports names of the store in upper case.
func (s *Store) names(ctx context.Context, report func(Finding) error) error {
	return s.eachWrongName(ctx, func(m wrongName) (string, error) {
		f := Finding{Kind: KindName, Severity: SeverityError, Path: m.path, Repairable: true, Detail: "its name is " + path.Base(m.right)}
		if f.Repairable = !m.taken || !m.context(); !f.Repairable {
			f.Detail += ", and another context has that name"
		}
		return m.path, report(f)
	})
}

// context reports whether the entry is a context's folder.
func (m *wrongName) context() bool {
	_, ok := ctxfolder.ParseID(m.right)
	return ok
}

func (s *Store) eachWrongName(ctx context.Context, wrong func(wrongName) (string, error)) error {
	n := names{ctx: ctx, fs: s.FS, right: s.rightName, wrong: wrong}
	return n.walk(".", ".")
}

// rightName is the right name of an entry in the store's folder.
func (s *Store) rightName(folder, name string) string {
	lower := strings.ToLower(name)
	ours := false
	switch parts := strings.Split(folder, "/"); {
	case folder == ".":
		_, ours = ctxfolder.ParseID(lower)
		if ours && (lower == name || !IsContext(s.FS, name)) {
			return "" // its content is checked elsewhere
		}
		ours = ours || slices.Contains(storeFolders, lower)
	case parts[0] == blob.Folder && len(parts) < 3:
		ours = blob.IsFanOut(lower)
	case parts[0] == blob.Folder && s.ReadData:
		_, ours = blob.ParseFile(lower)
	}
	if !ours {
		return ""
	}
	return lower
}

// IsContext reports whether a folder holds a part of a context, in any case.
func IsContext(store vfs.FS, name string) bool {
	for e, err := range store.ReadDir(name) {
		if err != nil {
			break
		}
		lower := strings.ToLower(e.Name())
		if _, journal := ctxfolder.ParseJournalFile(lower); journal || slices.Contains(contextNames, lower) {
			return true
		}
	}
	return false
}

// RepairNames renames entries of the store from upper case. It runs before all other repairs.
func (s *Store) RepairNames(ctx context.Context, dryRun bool, yield func(Repaired) bool) (left int, err error) {
	s.ReadData = true
	err = s.eachWrongName(ctx, func(m wrongName) (string, error) {
		now, done, what := m.path, !m.taken || !m.context(), "would be renamed to "
		if done && !dryRun {
			what, now = "renamed to ", m.right
			err := s.alone(ctx, m, func() (err error) {
				done, err = rename(s.FS, m)
				return err
			})
			if err != nil {
				return m.path, err
			}
		}
		if !done {
			left++
			return m.path, nil
		}
		if !yield(Repaired{Kind: KindName, Path: m.path, Detail: what + m.right}) {
			return now, errStopped
		}
		return now, nil
	})
	if errors.Is(err, errStopped) {
		err = nil
	}
	return left, err
}

// alone runs f while nobody uses the wrong name or the right one.
func (s *Store) alone(ctx context.Context, m wrongName, f func() error) error {
	id, ok := ctxfolder.ParseID(m.right)
	if !ok {
		return s.Payloads.Alone(ctx, f)
	}
	return s.Alone(ctx, id, func() error {
		if _, err := s.FS.Lstat(m.right); err == nil || ctxfolder.Ready(s.FS, id) {
			return fmt.Errorf("%w: another context has that name", fs.ErrExist)
		}
		return f()
	})
}
