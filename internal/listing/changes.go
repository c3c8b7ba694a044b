package listing

import (
	"bytes"
	"os"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// A list with conditions on metadata examines the files of those contexts that met the conditions when they were last
// read. [engine.ChangesFile] names the others that may meet them now: a commit that changes the title, the labels or the model
// adds the context's id to that file. An edit of metadata.json by hand adds nothing, and neither does a process that is
// killed at this moment, so one list in each [FullCheck] examines all files.

// FullCheck is how long a list relies on ChangesFile.
const FullCheck = 10 * time.Second

// changesLine is the length of a line of ChangesFile.
const changesLine = 36 + len("\n")

// changesSeen is how much of ChangesFile a list has read.
type changesSeen struct {
	Number uint64 `json:"n"`
	Size   int64  `json:"size"`
}

// changesNow returns the current state of ChangesFile, zero without the file.
func changesNow(s *engine.Store) (now changesSeen) {
	if info, err := s.FS.Lstat(engine.ChangesFile); err == nil && info.Mode().IsRegular() {
		now = changesSeen{vfs.Number(info), info.Size()}
	}
	return now
}

// changedSince returns the contexts that ChangesFile names between two states. ok is false if that is not known.
func changedSince(s *engine.Store, seen, now changesSeen) (changed map[uuid.UUID]bool, ok bool) {
	if seen == now {
		return nil, true
	}
	none := changesSeen{}
	if now == none || seen != none && seen.Number != now.Number || seen.Size > now.Size || now.Size > 2*engine.MaxChanges {
		return nil, false
	}
	f, err := s.FS.OpenFile(engine.ChangesFile, os.O_RDONLY)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	from := seen.Size - seen.Size%int64(changesLine)
	b := make([]byte, now.Size-from)
	if n, _ := f.ReadAt(b, from); n < len(b) {
		return nil, false
	}
	changed = map[uuid.UUID]bool{}
	for line := range bytes.Lines(b) {
		id, err := uuid.ParseBytes(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil || len(line) != changesLine {
			return nil, false // a torn line
		}
		changed[id] = true
	}
	return changed, true
}

// examination says which contexts a list examines. It relies on the cache for the others.
type examination struct {
	all     bool
	changed map[uuid.UUID]bool // named in ChangesFile since the last list
	labels  [][]byte           // see labelTexts
	o       *ListOptions
	known   summaries
	saved   bool // known is what the file has
	head    head // of the file
	seen    changesSeen
	checked int64               // the last list that examined all contexts, this one included
	folder  freshness.FileState // of the store, if it holds the contexts of the file and no others
	left    summaries           // what is left out
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

// rows returns an empty row for each entry that may be in the list.
func (x *examination) rows(entries []engine.Entry) (rows []listRow) {
	x.left = make(summaries, 0, len(entries))
	known := x.known
	for _, e := range entries {
		for len(known) > 0 && compareIDs(known[0].id, e.ID) < 0 {
			known = known[1:]
		}
		row := listRow{Entry: e}
		if len(known) > 0 && known[0].id == e.ID {
			row.known = known[0]
		}
		if row.judged = row.known.isDecoded(); e.Folder && x.leavesOut(row.known, row.judged) {
			x.left = append(x.left, row.known)
		} else {
			rows = append(rows, row)
		}
	}
	return rows
}

// leavesOut reports whether a list need not examine the files of a context: it is not in the list. Without decode it
// judges by the labels only.
func (x *examination) leavesOut(r *cachedSummary, decode bool) bool {
	if x.all || r == nil || x.changed[r.id] {
		return false
	}
	if !x.mayHaveLabels(r.line[r.rest:]) {
		return true
	}
	if !decode {
		return false
	}
	row := r.decoded()
	return row != nil && row.Format == "" && !x.o.selectsMetadata(row.Labels, row.Kind, row.Title, row.Model)
}

// mayHaveLabels reports whether the members of a row from the third on have the text of each label that the options ask
// for. It saves the decoding of the others.
func (x *examination) mayHaveLabels(members []byte) bool {
	if len(x.labels) == 0 {
		return true
	}
	labels, ok := bytes.CutPrefix(members, []byte(`"labels":{`))
	for _, text := range x.labels {
		ok = ok && bytes.Contains(labels, text)
	}
	return ok
}

// labelTexts returns the labels that the options ask for, as summaries.jsonl has them.
func (o *ListOptions) labelTexts() (texts [][]byte) {
	for key, value := range o.Labels {
		if text, err := json.Marshal(map[string]string{key: value}); err == nil {
			texts = append(texts, text[1:len(text)-1])
		}
	}
	return texts
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
