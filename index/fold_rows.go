package index

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// writeRows writes the rows of the folded entries and makes them durable.
func (l *Log) writeRows(w *foldWork) error {
	named := false
	for i := range w.lines {
		ln := &w.lines[i]
		if len(ln.entries) == 0 && !ln.cut {
			continue
		}
		write := l.writeRowsOf
		if dense := ln.dense(
			ln.Base,
		); ln.cut && ln.End() < dense || len(ln.entries) > 0 && ln.entries[0].Position < dense ||
			slices.ContainsFunc(ln.entries, archived) {
			write = l.rewriteRowsOf
		}
		made, err := write(ln)
		if err != nil {
			return err
		}
		named = named || made
	}
	if !named {
		return nil
	}
	return l.syncRows()
}

// writeRowsOf writes rows of the dense part in their places. It reports whether it created the file.
func (l *Log) writeRowsOf(ln *foldLine) (made bool, err error) {
	first := ln.first(ln.Base)
	rows, err := openRows(l.dir, ctxfolder.RowsFile(ln.Line, ln.Rows), first)
	if err != nil {
		return false, err
	}
	for i := range ln.entries {
		if err == nil {
			err = rows.put(&ln.entries[i])
		}
	}
	if err == nil {
		err = rows.end(ln.End() - first)
	}
	return rows.made, cmp.Or(err, rows.close())
}

// rewriteRowsOf writes a new row file where rows belong between others: rows of archived messages that now have another
// version, or none.
//
// Crash order: index.json names the old file until the new one is durable. The old file goes last.
func (l *Log) rewriteRowsOf(ln *foldLine) (made bool, err error) {
	rows, err := buildRows(l.dir, ln.Counts, ln.Rows+1, ln.Packs)
	if err != nil {
		return false, err
	}
	for e, err := range l.merged(ln) {
		if err == nil {
			err = rows.put(e)
		}
		if err != nil {
			rows.abandon()
			return false, err
		}
	}
	ln.Placement, err = rows.finish()
	return true, err
}

// merged yields all entries of a line: the new ones of a fold, and the stored ones in the other positions.
func (l *Log) merged(ln *foldLine) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		news, next := ln.entries, ln.Base
		put := func(e *Entry) bool {
			if e.Position != next {
				yield(nil, fmt.Errorf("%w: line %s has no entry of position %d", ErrDamaged, ln.Line, next))
				return false
			}
			next++
			return yield(e, nil)
		}
		for old, err := range l.storedPages(ln.Line, ln.Base, min(ln.start, ln.End())) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range old {
				e := &old[i]
				if len(news) > 0 && news[0].Position == e.Position {
					e, news = &news[0], news[1:]
				}
				if !put(e) {
					return
				}
			}
		}
		for i := range news {
			if !put(&news[i]) {
				return
			}
		}
	}
}

// syncRows makes the names of row files durable.
func (l *Log) syncRows() error { return l.syncDirs(ctxfolder.RowsFolder, ".") }

// syncIndex makes the name of index.json durable: the process that replaced it may have stopped before. Only then is
// data that index.json does not name useless.
func (l *Log) syncIndex() error { return l.syncDirs(".") }

func (l *Log) syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := l.dir.FS.SyncDir(dir); err != nil {
			return fmt.Errorf("%w: %w", ErrDurability, err)
		}
	}
	return nil
}
