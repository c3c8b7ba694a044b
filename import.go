package ctxdir

import "github.com/ctxdir/ctxdir/importer"

// Importer returns the store in the form that package importer takes:
//
//	into := s.Importer()
//	for r, err := range importer.Import(ctx, into, path, importer.Options{Known: into}) { … }
//	err := into.Save()
//
// As [importer.Known], it is the cache of the histories that the store holds completely: an import passes over files that
// did not change since. Save keeps it for later imports, in derived/ of the store. It has no text of messages, and may be
// lost: then an import reads each file once more. If something was committed to a context since the import, such as an
// append or a rewind, its files are read again. Imports of several goroutines and processes may save. Save changes nothing
// in a store that is open for reading.
func (s *Store) Importer() importer.Destination {
	return s.imports.Destination()
}
