// Package listing lists the contexts of a store, and finds them by parts of their ids and by external ids.
//
// [New] returns the [Lister] of an open store; [Summarise] describes one open context. A list opens no context that has
// not changed since an earlier list: [SummariesFile] is a cache of what a list shows, with the states of the files from
// which that was read. [engine.ChangesFile] names the contexts that commits changed since. docs/APPLICATIONS.md
// describes both files.
package listing
