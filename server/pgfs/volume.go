package pgfs

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/jackc/pgx/v5"
)

// maxCached is how many entries of folders one user keeps in memory.
const maxCached = 50_000

// volume is the files of one user. All handles of one Open share it.
type volume struct {
	*owner
	sealer  Sealer
	damaged func(error)
	objects *bucket.Objects // nil: all content is in the database

	mu     sync.Mutex // guards the tree; held during the statements that change it
	root   *node
	last   int64 // the newest node
	cached int   // entries in memory
	locks  map[slot]*holders

	recent recent
	heard  hearers
}

var errEscapes = errors.New("path escapes from its folder")

// most returns how much data an extent has at most, in bytes.
func (v *volume) most() int {
	if v.objects != nil {
		return maxObject
	}
	return maxExtent
}

// place is where a path leads: a name in a folder, and what is there.
type place struct {
	dir  *node
	name string
	n    *node // nil: nothing
}

// find resolves a path below a folder. The caller holds mu.
func (v *volume) find(root *node, name string) (place, error) {
	switch {
	case name == "":
		return place{}, syscall.ENOENT
	case name[0] == '/':
		return place{}, errEscapes
	case strings.ContainsRune(name, 0):
		return place{}, syscall.EINVAL
	}
	clean := path.Clean(name)
	if clean == "." {
		return place{root, ".", root}, nil
	}
	dir := root
	for {
		part, rest, more := strings.Cut(clean, "/")
		switch {
		case part == "..":
			return place{}, errEscapes
		case len(part) > 255:
			return place{}, syscall.ENAMETOOLONG
		}
		if err := v.list(dir); err != nil {
			return place{}, err
		}
		n := dir.entries[part]
		if !more {
			return place{dir, part, n}, nil
		}
		switch {
		case n == nil:
			return place{}, syscall.ENOENT
		case !n.folder:
			return place{}, syscall.ENOTDIR
		}
		dir, clean = n, rest
	}
}

// folder finds a folder. The caller holds mu.
func (v *volume) folder(root *node, name string) (*node, error) {
	p, err := v.find(root, name)
	switch {
	case err != nil:
		return nil, err
	case p.n == nil:
		return nil, syscall.ENOENT
	case !p.n.folder:
		return nil, syscall.ENOTDIR
	}
	return p.n, nil
}

// list reads the entries of a folder, once. The caller holds mu.
func (v *volume) list(dir *node) error {
	if dir.entries != nil {
		return v.alive()
	}
	entries := map[string]*node{}
	err := v.read(func(rows pgx.Rows) error {
		var sealed []byte
		n := &node{up: dir}
		if err := rows.Scan(&sealed, &n.id, &n.folder, &n.size, &n.mtime); err != nil {
			return fault(err)
		}
		name, err := v.sealer.OpenName(sealed, dir.id)
		if err != nil {
			v.damaged(fmt.Errorf("%w: entry %x of folder %d: %w", ErrDamaged, sealed, dir.id, err))
			return nil
		}
		n.name = name
		entries[name] = n
		return nil
	}, selectFolder, dir.id)
	if err != nil {
		return err
	}
	if v.cached += len(entries); v.cached > maxCached {
		v.shrink(v.root, dir)
	}
	dir.entries = entries
	return nil
}

// shrink forgets the entries of folders below n that nobody uses, and reports whether nobody uses n or anything below it.
// It leaves the folders that lead to keep. The caller holds mu.
func (v *volume) shrink(n, keep *node) (unused bool) {
	unused = n.refs == 0 && n != keep
	all := true
	for _, e := range n.entries {
		all = v.shrink(e, keep) && all
	}
	if all && n.entries != nil && n != keep {
		v.cached -= len(n.entries)
		n.entries = nil
	}
	return unused && all
}

// create makes a file or folder. The caller holds mu.
//
// Crash order: the node, its entry and the time of the folder are one transaction, which is durable after SyncDir.
func (v *volume) create(p place, folder bool) (*node, error) {
	if p.dir.gone {
		return nil, syscall.ENOENT
	}
	sealed, err := v.sealer.SealName(p.name, p.dir.id)
	if err != nil {
		return nil, err
	}
	n := &node{id: v.last + 1, folder: folder, up: p.dir, name: p.name, loaded: true, content: content{most: v.most()}}
	n.touch()
	n.changed = false
	v.last++
	if err := v.write(false, createEntry, n.id, p.dir.id, sealed, n.mtime, folder); err != nil {
		return nil, err
	}
	if folder {
		n.entries = map[string]*node{}
	}
	p.dir.put(p.name, n)
	p.dir.setTime(n.mtime)
	v.cached++
	v.tell(p.dir, p.name)
	return n, nil
}

func (n *node) put(name string, e *node) {
	n.entries[name] = e
	e.up, e.name = n, name
}

func (n *node) setTime(at int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mtime = at
}

// remove removes an entry. The caller holds mu.
//
// Crash order: the entry goes in one transaction, and the content with it, unless the file is open. Then folder 0 has the
// file until it is closed, or until the next Open.
func (v *volume) remove(p place) error {
	switch {
	case p.n == nil:
		return syscall.ENOENT
	case p.name == ".":
		return syscall.EINVAL
	case p.n.folder:
		if err := v.list(p.n); err != nil {
			return err
		}
		if len(p.n.entries) > 0 {
			return syscall.ENOTEMPTY
		}
	}
	sealed, err := v.sealer.SealName(p.name, p.dir.id)
	if err != nil {
		return err
	}
	at := now(p.dir)
	if err := v.write(false, unsynced+v.drop(p.n)+removeEntry, p.n.id, p.dir.id, sealed, at); err != nil {
		return err
	}
	delete(p.dir.entries, p.name)
	p.n.gone = true
	p.dir.setTime(at)
	v.cached--
	v.tell(p.dir, p.name)
	return nil
}

// drop is the part of a statement that removes a node without a name.
func (v *volume) drop(n *node) string {
	if n.refs > 0 && !n.folder {
		return keepNode
	}
	return dropNode
}

func now(dir *node) int64 {
	dir.mu.Lock()
	defer dir.mu.Unlock()
	was := dir.mtime
	dir.touch()
	at := dir.mtime
	dir.mtime, dir.changed = was, false
	return at
}

// rename moves an entry, in the place of another file if there is one. The caller holds mu.
//
// Crash order: one transaction. A crash leaves the old names or the new ones, and each whole.
func (v *volume) rename(from, to place, isNew bool) error {
	switch {
	case from.n == nil:
		return syscall.ENOENT
	case isNew && to.n != nil:
		return syscall.EEXIST
	case to.n != nil && to.n.folder: // os.Root never replaces a folder
		return syscall.EEXIST
	case from.name == "." || to.name == ".":
		return syscall.EBUSY
	case to.dir.gone:
		return syscall.ENOENT
	case from.n.folder && isBelow(to.dir, from.n):
		return syscall.EINVAL
	case to.n == from.n:
		return nil
	case from.n.folder && to.n != nil:
		return syscall.ENOTDIR
	}
	old, err := v.sealer.SealName(from.name, from.dir.id)
	if err != nil {
		return err
	}
	sealed, err := v.sealer.SealName(to.name, to.dir.id)
	if err != nil {
		return err
	}
	at := max(now(from.dir), now(to.dir))
	if to.n == nil {
		err = v.write(false, moveEntry, from.n.id, from.dir.id, old, to.dir.id, sealed, at)
	} else {
		err = v.write(false, unsynced+v.drop(to.n)+replaceEntry, to.n.id, from.dir.id, old, to.dir.id, sealed, at, from.n.id)
	}
	if err != nil {
		return err
	}
	if to.n != nil {
		to.n.gone = true
		v.cached--
	}
	delete(from.dir.entries, from.name)
	to.dir.put(to.name, from.n)
	from.dir.setTime(at)
	to.dir.setTime(at)
	v.tell(from.dir, from.name)
	v.tell(to.dir, to.name)
	return nil
}

// isBelow reports whether n is top or below it.
func isBelow(n, top *node) bool {
	for ; n != nil; n = n.up {
		if n == top {
			return true
		}
	}
	return false
}
