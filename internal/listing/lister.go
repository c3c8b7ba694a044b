package listing

import (
	"slices"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// RowsPerRead is how many rows of the cache are written in the time in which one context is read, about.
const RowsPerRead = 30

// Lister lists the contexts of an open store. Several goroutines may use it. It keeps in memory what its last list read.
type Lister struct {
	s *engine.Store

	mu      sync.Mutex
	file    freshness.FileState // summaries.jsonl when it was read or written, without its time; zero for none
	head    head
	known   summaries
	saved   bool                // known is what the file has
	folder  freshness.FileState // the store's folder when entries was read
	entries []engine.Entry      // ordered by id; nil if they have to be read again
	seen    changesSeen
}

// New returns a Lister for a store. Each open store has one; close it before the store.
func New(s *engine.Store) *Lister { return &Lister{s: s} }

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

// examine begins a list. Without options, it examines all contexts.
func (l *Lister) examine(o *ListOptions) *examination {
	began := time.Now()
	x := &examination{o: o, seen: changesNow(l.s)} // before it looks at any context
	changed, ok := changedSince(l.s, l.read(x), x.seen)
	age := began.Sub(time.Unix(0, x.head.checked))
	x.changed, x.checked = changed, x.head.checked
	if o != nil {
		x.labels = o.labelTexts()
	}
	if o == nil || !ok || age < 0 || age >= FullCheck {
		x.all, x.checked = true, began.UnixNano()
	}
	return x
}

// listEntries returns the entries of the store's folder, ordered by id. It reads the folder if that changed since the
// last list.
func (l *Lister) listEntries(x *examination) (entries []engine.Entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := l.s.FS.Lstat(".")
	if err != nil {
		return nil, err
	}
	now := freshness.FileState{Number: vfs.Number(info), Size: info.Size(), At: info.ModTime().UnixNano()}
	if l.entries != nil && l.folder == now {
		return l.entries, nil
	}
	keep := !isAmbiguous(now.At)
	if x.saved && x.head.folder == now && !x.all {
		for _, r := range x.known {
			entries = append(entries, engine.Entry{ID: r.id, Folder: true})
		}
	} else {
		for e, err := range l.s.Entries() {
			if err != nil {
				return nil, err
			}
			keep = keep && e.Folder // a legacy context may need a look
			entries = append(entries, e)
		}
		isKnown := func(e engine.Entry, r *cachedSummary) bool { return e.ID == r.id }
		if keep && x.saved && slices.EqualFunc(entries, x.known, isKnown) {
			x.folder = now
		}
	}
	l.entries = nil
	if keep && len(entries) <= maxListCache {
		l.folder, l.entries = now, entries
	}
	return entries, nil
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
