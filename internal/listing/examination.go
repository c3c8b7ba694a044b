package listing

import (
	"bytes"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// A list with conditions on metadata examines the files of those contexts that met the conditions when they were last
// read. [engine.ChangesFile] names the others that may meet them now: a commit that changes the title, the labels or the model
// adds the context's id to that file. An edit of metadata.json by hand adds nothing, and neither does a process that is
// killed at this moment, so one list in each [FullCheck] examines all files.

// FullCheck is how long a list relies on ChangesFile.
const FullCheck = 10 * time.Second

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
