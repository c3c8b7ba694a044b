package listing

import (
	"slices"

	"github.com/ctxdir/ctxdir/internal/freshness"
)

// RowsPerRead is how many rows of the cache are written in the time in which one context is read, about.
const RowsPerRead = 30

// read gives an examination the cache of the last list, or the file if that was replaced. seen is how much of ChangesFile
// the cache takes into account.
func (l *Lister) read(x *examination) (seen changesSeen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := fileNow(l.s); l.known == nil || l.file != now {
		l.file, l.saved = now, true
		l.known, l.seen, l.head = readFile(l.s)
	}
	x.known, x.saved, x.head = l.known, l.saved, l.head
	return l.seen
}

// keep keeps the rows of a list, and replaces the file if that is due.
func (l *Lister) keep(x *examination, rows []listRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, changed := x.left, false
	for i := range rows {
		if r := rows[i].cached; r != nil {
			all = append(all, r)
			changed = changed || r != rows[i].known
		}
	}
	if changed = changed || len(all) != len(x.known); changed {
		slices.SortFunc(all, byID)
	} else {
		all = x.known
	}
	isFile := l.head.check == x.head.check
	if isFile && x.folder != (freshness.FileState{}) {
		l.head.folder = x.folder
	}
	l.known, l.seen, l.head.checked, l.saved = all, x.seen, x.checked, isFile && x.saved && !changed
	switch {
	case l.s.ReadOnly:
	case !l.saved && (x.all || l.head.missed+all.fresh() > uint64(len(all)/RowsPerRead)):
		l.save()
	case l.head != x.head:
		writeHead(l.s, &l.head)
	}
	if len(all) > maxListCache {
		l.known = nil
	}
}

// save replaces the file. What another process removes for good after the list read it does not stay there: see
// [Forget]. The caller holds mu.
//
// Crash order: the file has no context that ChangesFile named before it was replaced. If ChangesFile names one while it is
// replaced, the file goes, and is written without that context.
func (l *Lister) save() {
	_, ok := l.dropChanged()
	for ok {
		h, written := replaceFile(l.s, l.known, l.seen, l.head.checked)
		if !written {
			return
		}
		var dropped bool
		if dropped, ok = l.dropChanged(); dropped || !ok {
			_, _ = l.s.FS.Remove(SummariesFile), l.s.FS.SyncDir(".")
			continue
		}
		l.file, l.head, l.saved = fileNow(l.s), h, true
		for _, r := range l.known {
			r.stored = true
		}
		return
	}
}

// dropChanged drops the rows of contexts that ChangesFile names since the list began. ok is false if that is not known.
func (l *Lister) dropChanged() (dropped, ok bool) {
	now := changesNow(l.s)
	changed, ok := changedSince(l.s, l.seen, now)
	if !ok || len(changed) == 0 {
		return false, ok
	}
	kept := slices.DeleteFunc(slices.Clone(l.known), func(r *cachedSummary) bool { return changed[r.id] })
	dropped = len(kept) < len(l.known)
	l.known, l.seen = kept, now
	return dropped, true
}

// fresh returns how many rows the file does not have. The caller holds the Lister's mu.
func (known summaries) fresh() (n uint64) {
	for _, r := range known {
		if !r.stored {
			n++
		}
	}
	return n
}

// Close notes in the file how many rows go with this process. The next one reads them again; once processes have read so
// many that the file could have been replaced for that, a list replaces it.
func (l *Lister) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh := l.known.fresh(); fresh > 0 && !l.s.ReadOnly {
		l.head.missed += fresh
		writeHead(l.s, &l.head)
	}
}
