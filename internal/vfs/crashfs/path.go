package crashfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

var errEscapes = errors.New("path escapes from parent")

// place is the target of a path: a name in a folder, and the file there.
type place struct {
	dir   *inode
	name  string
	node  *inode // nil: nothing
	slash bool   // the path ended in a slash
}

// walk resolves a path as os.Root does. With mayLack a path with a final slash may name nothing; naming a file is an
// error either way.
func (f *FS) walk(name string, mayLack bool) (place, error) {
	if name == "" {
		return place{}, fs.ErrInvalid
	}
	if name[0] == '/' {
		return place{}, errEscapes
	}
	p := place{slash: strings.HasSuffix(name, "/")}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
	dirs := []*inode{f.root}
	var names []string
	for i, part := range parts {
		final := i == len(parts)-1
		switch {
		case len(part) > 255:
			return p, syscall.ENAMETOOLONG
		case strings.ContainsRune(part, 0):
			return p, syscall.EINVAL
		case part == "..":
			if len(names) == 0 {
				return p, errEscapes
			}
			dirs, names = dirs[:len(dirs)-1], names[:len(names)-1]
		case part == "." && !final:
		case final:
			names = append(names, part)
		default:
			next := dirs[len(dirs)-1].entries[part]
			if next == nil {
				return p, syscall.ENOENT
			}
			if !next.dir {
				return p, syscall.ENOTDIR
			}
			dirs, names = append(dirs, next), append(names, part)
		}
	}
	p.name = "."
	if len(names) > 0 {
		p.name = names[len(names)-1]
	}
	// A final ".." leaves as many folders as names above the root; otherwise walk did not enter the last name.
	p.dir = dirs[max(0, len(names)-1)]
	p.node = p.dir.entries[p.name]
	if p.name == "." {
		p.node = p.dir
	}
	switch {
	case !p.slash:
	case p.node == nil && !mayLack:
		return p, syscall.ENOENT
	case p.node != nil && !p.node.dir:
		return p, syscall.ENOTDIR
	}
	return p, nil
}

// full returns the path from the root of the instance for a handle's name.
func (f *FS) full(name string) string { return join(f.d.pathOf(f.root), path.Clean(name)) }

func (d *disk) pathOf(n *inode) string {
	p := "."
	for ; n != d.root; n = n.up {
		if n.up == nil || n.links == 0 {
			return join(n.name+" (removed)", p)
		}
		p = join(n.name, p)
	}
	return p
}

func join(a, b string) string {
	switch {
	case a == ".":
		return b
	case b == ".":
		return a
	}
	return a + "/" + b
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
