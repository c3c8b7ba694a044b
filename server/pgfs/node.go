package pgfs

import (
	"io/fs"
	"sync"
	"time"
)

// node is a file or folder.
type node struct {
	id     int64
	folder bool

	// The volume's lock guards these.
	up      *node
	name    string
	gone    bool             // it was removed
	refs    int              // open files and folders
	entries map[string]*node // of a folder; nil if they were not read

	flushing sync.Mutex // taken before mu

	mu      sync.Mutex // no statement runs while it is held, but those of load
	size    int64
	mtime   int64 // in nanoseconds since 1970
	told    bool  // somebody was told mtime since the database has it
	changed bool  // the database has another mtime
	resized bool  // the database has another size
	loaded  bool  // content is there
	content content
}

func (n *node) touch() {
	n.mtime, n.changed = max(time.Now().UnixNano(), n.mtime+1), true
}

// identity is the FileInfo.Sys of a node.
type identity struct{ n *node }

// SameFile implements the comparison of vfs.SameFile.
func (i identity) SameFile(other any) bool {
	o, ok := other.(identity)
	return ok && i.n == o.n
}

type info struct {
	name string
	n    *node
	size int64
	time int64
}

// stat describes a node.
func (n *node) stat(name string) fs.FileInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return info{name, n, n.size, n.mtime}
}

func (i info) Name() string { return i.name }
func (i info) Size() int64  { return i.size }
func (i info) IsDir() bool  { return i.n.folder }
func (i info) Sys() any     { return identity{i.n} }
func (i info) Mode() fs.FileMode {
	if i.n.folder {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

// ModTime makes the next sync of the file write its time, too: a time that somebody knows must not come back after a crash,
// with other content.
func (i info) ModTime() time.Time {
	i.n.mu.Lock()
	defer i.n.mu.Unlock()
	i.n.told = true
	return time.Unix(0, i.time)
}

// entry is an entry of a folder.
type entry struct {
	name string
	n    *node
}

func (e entry) Name() string               { return e.name }
func (e entry) IsDir() bool                { return e.n.folder }
func (e entry) Type() fs.FileMode          { return e.n.stat(e.name).Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e.n.stat(e.name), nil }
