package legacy

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
)

// known are the top-level members that every generation has.
var known = []string{nameID, "parent_id", "config", NamePool, NameBranches, "active_branch_name", "current_state"}

// How much of a file detection reads.
const (
	detectBytes   = 16 << 20
	detectMembers = 64
)

// Detect returns the format of a path: of a file by its name or members, of a folder by its files. A damaged legacy
// context counts, and [Open] reports its damage. Detect follows no link, and returns only errors of the file system.
func Detect(fsys vfs.FS, name string) (Format, error) {
	format, _, err := detect(fsys, name)
	return format, err
}

// detect is Detect. notJSON reports that a file of an unknown format is not readable as JSON.
func detect(fsys vfs.FS, name string) (format Format, notJSON bool, err error) {
	info, err := fsys.Lstat(name)
	switch {
	case err != nil:
		return None, false, err
	case info.IsDir():
		format, err = detectFolder(fsys, name)
		return format, false, err
	case !info.Mode().IsRegular():
		return None, false, nil
	}
	s, err := shapeIn(fsys, name)
	if err != nil {
		return None, false, err
	}
	format = s.file(path.Base(name))
	return format, format == None && s.broken && info.Size() <= detectBytes, nil
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
	case infos[0] == nil && folder(4) && (file(3) || !folder(1) && !file(2)):
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
	s := shapeOf(io.LimitReader(f, detectBytes))
	if s.broken {
		s.words, err = wordsIn(io.NewSectionReader(f, 0, detectBytes))
	}
	return s, err
}

// file recognises a monolithic file by its shape and its name, base.
func (s *shape) file(base string) Format {
	_, named := NamedAfterContext(strings.ToLower(base))
	switch {
	case slices.Contains(s.names, "ctxdir"):
		return None
	case named, s.pool == '{' && (score(s.names) >= 2 || s.nodes), s.damaged():
		return Monolithic
	}
	return None
}

// lacksNodes reports whether a context.json belongs to a split context: it is a context without nodes.
func (s *shape) lacksNodes() bool {
	return s.pool == '{' && s.empty && score(s.names) >= 2 || s.damaged()
}

// damaged reports whether a file looks like a context with a flipped bit or a missing end.
func (s *shape) damaged() bool {
	if !s.broken {
		return s.pool == 0 && score(s.names) >= 4
	}
	return s.pool == 0 && score(s.names) >= 2 || score(s.words) >= 4 || score(s.words) >= 2 && slices.Contains(s.words, NamePool)
}

// NamedAfterContext reports whether a file has the name of a monolithic context, ID.json, and returns the ID.
func NamedAfterContext(base string) (id string, ok bool) {
	id, ok = strings.CutSuffix(base, ".json")
	if ok {
		_, ok = parseID(id)
	}
	return id, ok
}

// shape is what the beginning of a file shows.
type shape struct {
	names  []string      // members of the top-level object
	pool   jsontext.Kind // of the member message_pool, 0 if there is none
	empty  bool          // the pool is empty
	nodes  bool          // the pool holds a node
	broken bool          // the file is not readable further
	words  []string      // known names anywhere in a broken file
}

// shapeOf reads members until they identify the file.
func shapeOf(r io.Reader) (s shape) {
	in, _ := withoutMark(r)
	d := jsontext.NewDecoder(in, message.Verbatim...)
	if d.PeekKind() != '{' {
		s.broken = d.SkipValue() != nil
		return s
	}
	_, _ = d.ReadToken() // the brace
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
		if name != NamePool || d.PeekKind() != '{' {
			err = d.SkipValue()
		} else {
			s.pool = '{'
			_, _ = d.ReadToken() // the brace
			if s.empty = d.PeekKind() == '}'; score(s.names) > 1 {
				return s
			}
			// Too few members are known yet: a node decides, or the members after the pool.
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

// score counts the known members among names.
func score(names []string) (n int) {
	for _, name := range known {
		if slices.Contains(names, name) {
			n++
		}
	}
	return n
}

// wordsIn returns the known names that a file contains as JSON strings, in any position.
func wordsIn(r io.Reader) (words []string, err error) {
	const longest = 32
	buf, n := make([]byte, 64<<10), 0
	for err == nil {
		var more int
		more, err = r.Read(buf[n:])
		n += more
		for _, name := range known {
			if !slices.Contains(words, name) && bytes.Contains(buf[:n], []byte(`"`+name+`"`)) {
				words = append(words, name)
			}
		}
		n = copy(buf, buf[max(0, n-longest):n])
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return words, err
}

// hasNode reads a pool, after its brace, up to the first node that has a message, or to its end.
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
		// After a member's name, the count of names and values is odd.
		if kind, length := d.StackIndex(outside + 2); kind == '{' && length%2 == 1 {
			return true, nil
		}
	}
}

// notThere reports whether an error means that a file does not exist.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// withoutMark skips the byte order mark with which some programs begin a UTF-8 file. It is not part of the JSON.
func withoutMark(r io.Reader) (io.Reader, int64) {
	const mark = "\ufeff"
	b := make([]byte, len(mark))
	n, _ := io.ReadFull(r, b) // the next read repeats an error
	if string(b) == mark {
		return r, int64(n)
	}
	return io.MultiReader(bytes.NewReader(b[:n]), r), 0
}
