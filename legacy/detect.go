package legacy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
)

// known are the members that every generation has at the top.
var known = []string{nameID, "parent_id", "config", namePool, NameBranches, "active_branch_name", "current_state"}

// What detection reads of a file.
const (
	detectBytes   = 16 << 20
	detectMembers = 64
)

// Detect says what lies at a path, by content and shape: a file by the members it has, as far as they can be read, a folder by what is in
// it: that of a split context also where its messages are gone. So a damaged legacy context is one too, and [Open] says what is wrong with it: one that ends after a few members, and one that
// bears the name of one and is no JSON from its beginning on. It follows no link. The error is one of the file system.
func Detect(fsys vfs.FS, name string) (Format, error) {
	info, err := fsys.Lstat(name)
	switch {
	case err != nil:
		return None, err
	case info.IsDir():
		return detectFolder(fsys, name)
	case !info.Mode().IsRegular():
		return None, nil
	}
	s, err := shapeIn(fsys, name)
	if err != nil {
		return None, err
	}
	return s.file(path.Base(name)), nil
}

func detectFolder(fsys vfs.FS, name string) (Format, error) {
	infos, err := vfs.LstatIn(fsys, name, "metadata.json", "messages", "index.json", ContextFile, PoolFolder)
	if err != nil {
		return None, err
	}
	file := func(i int) bool { return infos[i] != nil && infos[i].Mode().IsRegular() }
	folder := func(i int) bool { return infos[i] != nil && infos[i].IsDir() }
	switch {
	case file(0) && (folder(1) || file(2)):
		return Context, nil
	case infos[0] == nil && file(3) && folder(4):
		return Split, nil
	case infos[0] == nil && file(3) && !folder(1) && !file(2):
		s, err := shapeIn(fsys, name+"/"+ContextFile)
		if err == nil && s.lacksNodes() {
			return Split, nil
		}
		return None, err
	case !file(0):
		return None, nil
	}
	s, err := shapeIn(fsys, name+"/metadata.json")
	if err == nil && slices.Contains(s.names, "ctxdir") {
		return Context, nil
	}
	return None, err
}

func shapeIn(fsys vfs.FS, name string) (shape, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return shape{}, err
	}
	defer f.Close()
	return shapeOf(io.LimitReader(f, detectBytes)), nil
}

// file recognises a monolithic file. base is its name.
func (s *shape) file(base string) Format {
	score := s.score()
	_, named := NamedAfterContext(base)
	switch {
	case slices.Contains(s.names, "ctxdir"):
		return None
	case s.pool == '{' && (score >= 2 || s.nodes):
	case s.broken && score >= 2 && s.pool == 0:
	case s.broken && named && (score == 1 || len(s.names) == 0):
	default:
		return None
	}
	return Monolithic
}

// lacksNodes reports whether a context.json is that of a split context: it is what a context is without its nodes, and has none itself.
func (s *shape) lacksNodes() bool {
	return s.pool == '{' && s.empty && s.score() >= 2 || s.pool == 0 && s.score() >= 4
}

// NamedAfterContext reports whether a file bears the name of a monolithic context, ID.json, and returns the ID.
func NamedAfterContext(base string) (id string, ok bool) {
	id, ok = strings.CutSuffix(base, ".json")
	if ok {
		_, ok = parseID(id)
	}
	return id, ok
}

// shape is what the beginning of a file looks like.
type shape struct {
	names  []string      // of the members of the object that it is
	pool   jsontext.Kind // of the member message_pool, 0 without one
	empty  bool          // and there is nothing in it
	nodes  bool          // and there is a node in it
	broken bool          // it cannot be read on
}

// shapeOf reads members until it is clear what they belong to.
func shapeOf(r io.Reader) (s shape) {
	in, _ := withoutMark(r)
	d := jsontext.NewDecoder(in, verbatim...)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		s.broken = err != nil
		return s
	}
	for len(s.names) < detectMembers {
		t, err := d.ReadToken()
		if err != nil {
			s.broken = true
			return s
		}
		if t.Kind() == '}' {
			return s
		}
		name := t.String()
		s.names = append(s.names, name)
		if name != namePool || d.PeekKind() != '{' {
			err = d.SkipValue()
		} else {
			s.pool = '{'
			_, _ = d.ReadToken() // the brace
			if s.empty = d.PeekKind() == '}'; s.score() > 1 {
				return s
			}
			// Nothing else is known of it yet: a node tells, or what comes behind the pool.
			if s.nodes, err = hasNode(d); s.nodes {
				return s
			}
		}
		if err != nil {
			s.broken = true
			return s
		}
	}
	return s
}

// score is how many of the members that every generation has were seen.
func (s *shape) score() (n int) {
	for _, name := range known {
		if slices.Contains(s.names, name) {
			n++
		}
	}
	return n
}

// hasNode reads a pool, behind its brace, up to the first node that has a message, or to its end.
func hasNode(d *jsontext.Decoder) (bool, error) {
	outside := d.StackDepth() - 1
	for {
		t, err := d.ReadToken()
		if err != nil || d.StackDepth() == outside {
			return false, err
		}
		if d.StackDepth() != outside+2 || t.Kind() != '"' || t.String() != nameMessage {
			continue
		}
		// Behind a name the number of names and values is odd.
		if kind, length := d.StackIndex(outside + 2); kind == '{' && length%2 == 1 {
			return true, nil
		}
	}
}

// notThere reports whether an error says that there is nothing.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
