package legacy

import (
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// File is an open legacy context. It knows the parts of the context, and reads nodes one by one.
type File struct {
	Format   Format
	Members  Members  // of the whole; the pool and the branches have no value
	Branches []Branch // in the order of the file
	Prompt   jsontext.Value
	Size     int64    // of all files, in bytes
	Digest   [32]byte // of all files

	fs    vfs.FS
	name  string
	limit int64
	file  vfs.File // of a monolithic context
	nodes []node
	byKey []int32        // nodes sorted by key
	files map[key]string // of a split context: names that are not UUIDs
	read  func(done int64)
	stop  func() error

	stamp      stamp
	mark       int64 // length of the byte order mark at the beginning
	pool       bool  // message_pool exists and is an object
	branchesAt int64 // offset of the value; -1 if there is none
	inline     bool  // of a split context: context.json holds nodes
}

// Branch is a branch of a legacy context.
type Branch struct {
	Name    jsontext.Value // its key, a JSON string
	Members Members        // the list, if it is an array, has no value
	Nodes   []int32        // the nodes that the list names, in order
	Missing []Missing      // elements of the list that the pool lacks
}

// Missing is an element of a list that is not a key of the pool.
type Missing struct {
	At int            `json:"at"` // number of elements before it that are in the pool
	ID jsontext.Value `json:"id"` // verbatim
}

// node is the place of a node.
type node struct {
	key   key
	off   int64  // in the file: after the token before its key
	size  uint32 // from off to the end of its value
	flags uint8
}

const (
	canonical = 1 << iota // the key is a UUID
	shadowed              // a later node has the same key
	inFile                // the node has its own file
)

// Close closes the file.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Len is the number of nodes.
func (f *File) Len() int { return len(f.nodes) }

// ContextID is the context's own id if that is a UUID, else an id derived from it.
func (f *File) ContextID() uuid.UUID {
	own := f.Members.Get(nameID)
	if id, ok := ParseID(own); ok {
		return id
	}
	if own != nil {
		return uuid.NewSHA1(space, own)
	}
	stem := strings.TrimSuffix(Original(path.Base(f.name)), nodeEnd)
	if id, ok := parseID(stem); ok {
		return id
	}
	return uuid.NewSHA1(space, f.Digest[:])
}

// sortNodes sorts the nodes by key, and marks those whose key a later node has.
func (f *File) sortNodes() {
	f.byKey = make([]int32, len(f.nodes))
	for i := range f.byKey {
		f.byKey[i] = int32(i)
	}
	slices.SortFunc(f.byKey, func(a, b int32) int {
		if c := slices.Compare(f.nodes[a].key[:], f.nodes[b].key[:]); c != 0 {
			return c
		}
		return int(a - b)
	})
	for i := 1; i < len(f.byKey); i++ {
		if before := &f.nodes[f.byKey[i-1]]; before.key == f.nodes[f.byKey[i]].key {
			before.flags |= shadowed
		}
	}
}

// run returns the range of a key's nodes in byKey.
func (f *File) run(k key) (from, to int) {
	from = sort.Search(len(f.byKey), func(i int) bool { return slices.Compare(f.nodes[f.byKey[i]].key[:], k[:]) >= 0 })
	for to = from; to < len(f.byKey) && f.nodes[f.byKey[to]].key == k; to++ {
	}
	return from, to
}

// lookup returns the last node with a key, which is the valid one.
func (f *File) lookup(k key) (int32, bool) {
	i := sort.Search(len(f.byKey), func(i int) bool { return slices.Compare(f.nodes[f.byKey[i]].key[:], k[:]) > 0 })
	if i == 0 || f.nodes[f.byKey[i-1]].key != k {
		return 0, false
	}
	return f.byKey[i-1], true
}

// Unchanged fails with [ErrChanged] if the inodes, sizes or times of the files under name differ from those read.
func (f *File) Unchanged(name string) error {
	var now stamp
	look := func(file string) error {
		info, err := f.fs.Lstat(name + file)
		if err == nil {
			now.add(file, info)
		}
		return err
	}
	if f.Format == Monolithic {
		if err := look(""); err != nil {
			return err
		}
	} else if err := f.lookAround(name, look); err != nil {
		return err
	}
	if now != f.stamp {
		return ErrChanged
	}
	return nil
}

// lookAround calls look for every file of a split context.
func (f *File) lookAround(name string, look func(file string) error) error {
	if err := look("/" + ContextFile); err != nil {
		return err
	}
	if err := look("/" + PromptFile); err != nil && !notThere(err) {
		return err
	}
	for e, err := range f.fs.ReadDir(name + "/" + PoolFolder) {
		if err != nil {
			return err
		}
		if isNodeFile(e.Name()) {
			if err := look("/" + PoolFolder + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
