package blob

import (
	"errors"
	"io/fs"
	"iter"
	"strings"
)

// IsFanOut reports whether a name is that of a folder between the folder of blobs and the blobs.
func IsFanOut(name string) bool { return len(name) == 2 && strings.Trim(name, lowerDigits) == "" }

// Walk yields the names of all blobs, in no particular order and in bounded memory, without opening any. It skips other
// items: temporary files of writers, which begin with a dot, left-overs of crashes, and foreign files. If foreign is
// not nil, Walk calls it with each such path, relative to the store's folder. An unreadable folder gives an error, and
// the walk continues.
func (s *Store) Walk(foreign func(path string)) iter.Seq2[Sum, error] {
	if foreign == nil {
		foreign = func(string) {}
	}
	return func(yield func(Sum, error) bool) {
		s.walk(Folder, "", foreign, yield)
	}
}

// walk walks a folder at a depth of 0, 1 or 2 hexadecimal pairs, which digits holds.
func (s *Store) walk(dir, digits string, foreign func(string), yield func(Sum, error) bool) bool {
	for e, err := range s.fs.ReadDir(dir) {
		if errors.Is(err, fs.ErrNotExist) {
			return true // no blob yet, or a folder removed meanwhile
		}
		if err != nil {
			if !yield(Sum{}, err) {
				return false
			}
			continue
		}
		path := dir + "/" + e.Name()
		if len(digits) < 4 {
			if !e.IsDir() || !IsFanOut(e.Name()) {
				foreign(path)
			} else if !s.walk(path, digits+e.Name(), foreign, yield) {
				return false
			}
			continue
		}
		hex, ok := strings.CutSuffix(e.Name(), Suffix)
		sum, err := ParseSum(hex)
		if !ok || err != nil || !e.Type().IsRegular() || !strings.HasPrefix(hex, digits) {
			foreign(path)
		} else if !yield(sum, nil) {
			return false
		}
	}
	return true
}
