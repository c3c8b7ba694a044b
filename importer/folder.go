package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ctxdir/ctxdir/internal/message"
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

func (f *folderEvents) records(o *Options, problem func(Problem)) records {
	return &folderRecords{f: f, limit: o.MaxRecord, growing: o.Growing, problem: problem}
}

// folderRecords reads the events in order.
type folderRecords struct {
	f       *folderEvents
	at      int
	limit   int64
	growing bool
	problem func(Problem) // may be nil
}

func (r *folderRecords) next() (json.RawMessage, int64, error) {
	for r.at < len(r.f.names) {
		name := r.f.names[r.at]
		r.at++
		body, err := readRecord(r.f.root, name, r.limit)
		if err == nil {
			return body, int64(r.at), nil
		}
		if isUnfinished(err, r.growing) {
			break // the events after it follow later, in order
		}
		if r.problem != nil {
			r.problem(Problem{filepath.Join(r.f.root.Name(), name), 1, reasonOf(err)})
		}
	}
	return nil, int64(r.at), io.EOF
}

// isUnfinished reports whether an error about the JSON of a growing file only means that the file is being written.
func isUnfinished(err error, growing bool) bool {
	return growing && errors.Is(err, io.ErrUnexpectedEOF)
}

// readRecord returns the JSON in a file, of at most limit bytes.
func readRecord(root *os.Root, name string, limit int64) (json.RawMessage, error) {
	name = filepath.FromSlash(name)
	st, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case st.Size() > limit:
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrTooLarge, st.Size(), limit)
	}
	b, err := root.ReadFile(name)
	if err == nil && len(b) == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return message.Compact(b)
}
