package importer

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// folderEvents is a conversation that is a folder with one file for each event.
type folderEvents struct {
	root  *os.Root
	names []string // in order
}

// openFolder opens a folder of events. It fails with [fs.ErrInvalid] if the folder is none.
func openFolder(path string) (*folderEvents, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	f := &folderEvents{root: root}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		root.Close()
		return nil, err
	}
	for _, e := range entries {
		if _, ok := eventNumber(e.Name()); ok && e.Type().IsRegular() {
			f.names = append(f.names, e.Name())
		}
	}
	slices.SortFunc(f.names, func(a, b string) int {
		x, _ := eventNumber(a)
		y, _ := eventNumber(b)
		if x != y {
			return int(min(max(x-y, -1), 1))
		}
		return strings.Compare(a, b)
	})
	if len(f.names) > 0 {
		if b, err := root.ReadFile(f.names[0]); err == nil {
			if s := shapeOf(b); s.format() == OpenHands {
				return f, nil
			}
		}
	}
	root.Close()
	return nil, fmt.Errorf("%s: %w: a folder without events", path, fs.ErrInvalid)
}

// eventNumber is the number in the name of an event's file, 12.json or event-00012-….json.
func eventNumber(name string) (int64, bool) {
	stem, isJSON := strings.CutSuffix(name, ".json")
	stem = strings.TrimPrefix(stem, "event-")
	if end := strings.IndexFunc(stem, func(r rune) bool { return !unicode.IsDigit(r) }); end > 0 && stem[end] == '-' {
		stem = stem[:end]
	}
	n, err := strconv.ParseInt(stem, 10, 64)
	return n, isJSON && err == nil
}

func (f *folderEvents) records(j *job, report bool) records {
	return &folderRecords{f: f, j: j, silent: !report}
}

// folderRecords reads the events in order.
type folderRecords struct {
	f      *folderEvents
	j      *job
	at     int
	silent bool
}

func (r *folderRecords) next() (json.RawMessage, int64, error) {
	for r.at < len(r.f.names) {
		name := r.f.names[r.at]
		r.at++
		body, err := r.j.folderFile(r.f.root, name)
		if err == nil {
			return body, int64(r.at), nil
		}
		if r.j.unfinished(err) {
			break // the events after it follow later, in order
		}
		if !r.silent {
			r.j.problem(Problem{filepath.Join(r.f.root.Name(), name), 1, reasonOf(err)})
		}
	}
	return nil, int64(r.at), io.EOF
}
