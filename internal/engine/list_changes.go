package engine

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// A list with conditions on metadata examines the files of those contexts that met the conditions when they were last
// read. [ChangesFile] names the others that may meet them now: a commit that changes the title, the labels or the model
// adds the context's id to that file. An edit of metadata.json by hand adds nothing, and neither does a process that is
// killed at this moment, so one list in each [FullCheck] examines all files.

// ChangesFile holds the ids of contexts whose title, labels or model a commit changed, one a line. It is part of the
// cache of [Store.List].
const ChangesFile = "summaries.changes"

// FullCheck is how long a list relies on ChangesFile.
const FullCheck = 10 * time.Second

// maxChanges bounds ChangesFile. The next writer removes a larger one, and every list then examines all files once.
const maxChanges = 1 << 20

// changesLine is the length of a line of ChangesFile.
const changesLine = 36 + len("\n")

// noteChange adds the context to ChangesFile if a commit changed what conditions of a list ask for. The caller holds
// the lock, and the commit is visible. If noteChange fails, the next full check finds the change.
func (c *Context) noteChange(before, after *Metadata) {
	if before != nil && before.Title == after.Title && maps.Equal(before.Labels.Texts(), after.Labels.Texts()) &&
		before.Config.Text("model_id") == after.Config.Text("model_id") {
		return
	}
	c.Store.NoteChange(c.Dir.ID)
}

// NoteChange adds a context to ChangesFile.
func (s *Store) NoteChange(id uuid.UUID) {
	f, err := s.FS.OpenFile(ChangesFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return
	}
	_, _ = f.Write([]byte(id.String() + "\n"))
	info, err := f.Stat()
	_ = f.Close()
	if err == nil && info.Size() > maxChanges {
		_ = s.FS.Remove(ChangesFile)
	}
}

// changesSeen is how much of ChangesFile a list has read.
type changesSeen struct {
	Number uint64 `json:"n"`
	Size   int64  `json:"size"`
}

// changesNow returns the present state of ChangesFile, zero without the file.
func (s *Store) changesNow() (now changesSeen) {
	if info, err := s.FS.Lstat(ChangesFile); err == nil && info.Mode().IsRegular() {
		now = changesSeen{vfs.Number(info), info.Size()}
	}
	return now
}

// changedSince returns the contexts that ChangesFile names between two states. ok is false if that is not known.
func (s *Store) changedSince(seen, now changesSeen) (changed map[uuid.UUID]bool, ok bool) {
	if seen == now {
		return nil, true
	}
	none := changesSeen{}
	if now == none || seen != none && seen.Number != now.Number || seen.Size > now.Size || now.Size > 2*maxChanges {
		return nil, false
	}
	f, err := s.FS.OpenFile(ChangesFile, os.O_RDONLY)
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
	saved   bool          // known is what the file has
	head    summariesHead // of the file
	seen    changesSeen
	checked int64     // the last list that examined all contexts, this one included
	folder  fileState // of the store, if it holds the contexts of the file and no others
	left    summaries // what is left out
}

// examine begins a list. Without options, it examines all contexts.
func (s *Store) examine(o *ListOptions) *examination {
	began := time.Now()
	x := &examination{o: o, seen: s.changesNow()} // before it looks at any context
	changed, ok := s.changedSince(s.readSummaries(x), x.seen)
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
func (x *examination) rows(entries []entry) (rows []listRow) {
	x.left = make(summaries, 0, len(entries))
	known := x.known
	for _, e := range entries {
		for len(known) > 0 && compareIDs(known[0].id, e.id) < 0 {
			known = known[1:]
		}
		row := listRow{entry: e}
		if len(known) > 0 && known[0].id == e.id {
			row.known = known[0]
		}
		if row.judged = row.known.isDecoded(); e.folder && x.leavesOut(row.known, row.judged) {
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
func (s *Store) listEntries(x *examination) (entries []entry, err error) {
	c := s.listed
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := s.FS.Lstat(".")
	if err != nil {
		return nil, err
	}
	now := fileState{vfs.Number(info), info.Size(), info.ModTime().UnixNano()}
	if c.entries != nil && c.folder == now {
		return c.entries, nil
	}
	keep := !isAmbiguous(now.At)
	if x.saved && x.head.folder == now && !x.all {
		for _, r := range x.known {
			entries = append(entries, entry{r.id, true})
		}
	} else {
		for e, err := range s.entries() {
			if err != nil {
				return nil, err
			}
			keep = keep && e.folder // a legacy context may need a look
			entries = append(entries, e)
		}
		isKnown := func(e entry, r *cachedSummary) bool { return e.id == r.id }
		if keep && x.saved && slices.EqualFunc(entries, x.known, isKnown) {
			x.folder = now
		}
	}
	c.entries = nil
	if keep && len(entries) <= maxListCache {
		c.folder, c.entries = now, entries
	}
	return entries, nil
}
