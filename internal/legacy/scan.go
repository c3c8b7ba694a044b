package legacy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
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

// Options configure Open.
type Options struct {
	Limit    int64            // size limit of a node, in bytes; 0 means 256 MiB
	Progress func(read int64) // receives the number of bytes read; may be nil
	Stop     func() error     // called now and then; its error ends Open. May be nil
}

// Open reads a legacy context to its end, but keeps no nodes in memory. It fails with [ErrNotLegacy], [ErrDamaged],
// [ErrTooLarge], or an error of the file system.
func Open(fsys vfs.FS, name string, o Options) (*File, error) {
	format, err := Detect(fsys, name)
	if err != nil {
		return nil, err
	}
	f := &File{Format: format, fs: fsys, name: name, limit: o.Limit, read: o.Progress, stop: o.Stop, branchesAt: -1, files: map[key]string{}}
	if f.limit <= 0 {
		f.limit = 256 << 20
	}
	f.limit = min(f.limit, math.MaxUint32-1<<20)
	sum := sha256.New()
	at := name
	switch format {
	case Monolithic:
	case Split:
		at += "/" + ContextFile
	default:
		return nil, ErrNotLegacy
	}
	if info, lerr := fsys.Lstat(at); format == Split && (notThere(lerr) || lerr == nil && !info.Mode().IsRegular()) {
		return nil, damaged("a split context without its %s", ContextFile)
	}
	if f.file, err = fsys.OpenFile(at, os.O_RDONLY); err == nil {
		err = f.scan(at[len(name):], sum)
	}
	switch {
	case err != nil:
	case format == Split:
		err = f.scanFolder(sum)
	case !f.pool:
		err = damaged("it has no object %q", NamePool)
	case len(f.nodes) == 0 && path.Base(name) == ContextFile:
		err = damaged("a split context without its messages")
	}
	if err == nil {
		f.sortNodes()
		err = f.scanBranches()
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	sum.Sum(f.Digest[:0])
	return f, nil
}

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

// scan reads the members of the file, and the places of the nodes.
func (f *File) scan(name string, sum hash.Hash) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	f.stamp.add(name, info)
	r, mark := withoutMark(io.TeeReader(f.file, sum))
	f.mark = mark
	in := &limitReader{r: r, limit: f.limit + 1<<20, zero: -1, report: f.read, stop: f.stop}
	d := jsontext.NewDecoder(in, message.Verbatim...)
	err = f.scanObject(d, in)
	f.Size = f.mark + in.read
	return readable(err, in)
}

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

// readable explains why a file is not readable as JSON.
func readable(err error, in *limitReader) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case err == nil, errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, errLimit):
		return fmt.Errorf("%w: it exceeds the limit of %d bytes, from byte %d on", ErrTooLarge, in.limit, in.floor)
	case errors.Is(err, io.EOF) && in.read == 0:
		return damaged("the file is empty")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("the last value is truncated")
	case errors.As(err, &syntactic):
		if in.zero >= 0 {
			return damaged("zero bytes from byte %d on", in.zero)
		}
		return damaged("invalid JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	}
	return err
}

func (f *File) scanObject(d *jsontext.Decoder, in *limitReader) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		if err == nil {
			err = damaged("it is not an object")
		}
		return err
	}
	for d.PeekKind() == '"' {
		m, err := nextMember(d, in)
		if err != nil {
			return err
		}
		switch kind := d.PeekKind(); {
		case m.Is(NamePool) && kind == '{':
			if f.pool {
				return damaged("%q occurs twice", NamePool)
			}
			f.pool = true
			err = f.scanPool(d, in)
		case m.Is(NameBranches) && kind == '{':
			if f.branchesAt >= 0 {
				return damaged("%q occurs twice", NameBranches)
			}
			f.branchesAt = d.InputOffset()
			err = skipMembers(d, in)
		default:
			m.Value, err = shallowNext(d)
		}
		if err != nil {
			return err
		}
		f.Members = append(f.Members, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	in.floor = d.InputOffset()
	switch _, err := d.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return damaged("unexpected data after the context, at byte %d", d.InputOffset())
	default:
		return err
	}
}

// nextMember reads the name of the next member of an object.
func nextMember(d *jsontext.Decoder, in *limitReader) (m Member, err error) {
	in.floor = d.InputOffset()
	raw, err := d.ReadValue()
	if err == nil {
		m.Name, err = compacted(raw)
	}
	return m, err
}

// shallowNext reads a value other than a message.
func shallowNext(d *jsontext.Decoder) (jsontext.Value, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	return shallow(value)
}

// skipMembers skips the members of an object; the limit applies to each.
func skipMembers(d *jsontext.Decoder, in *limitReader) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		in.floor = d.InputOffset()
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		if err := d.SkipValue(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// scanPool notes the places of the nodes.
func (f *File) scanPool(d *jsontext.Decoder, in *limitReader) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		off := d.InputOffset()
		in.floor = off
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		k, isID := keyOf(t.String())
		if err := d.SkipValue(); err != nil {
			return err
		}
		size := d.InputOffset() - off
		if size > f.limit {
			return fmt.Errorf("%w: %d bytes at offset %d exceed the limit of %d", ErrTooLarge, size, off, f.limit)
		}
		n := node{key: k, off: off, size: uint32(size)}
		if isID {
			n.flags |= canonical
		}
		f.nodes = append(f.nodes, n)
	}
	if len(f.nodes) > math.MaxInt32-1 {
		return fmt.Errorf("%w: %d nodes exceed the limit", ErrTooLarge, len(f.nodes))
	}
	_, err := d.ReadToken()
	return err
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

// limitReader counts bytes, and fails more than limit bytes after floor: an endless value must not fill the memory.
type limitReader struct {
	r           io.Reader
	read, floor int64
	limit       int64
	zero        int64 // offset of the first zero byte; -1 if there is none
	report      func(int64)
	stop        func() error
}

var errLimit = errors.New("limit")

func (c *limitReader) Read(p []byte) (int, error) {
	if c.read-c.floor > c.limit {
		return 0, errLimit
	}
	if c.stop != nil {
		if err := c.stop(); err != nil {
			return 0, err
		}
	}
	n, err := c.r.Read(p)
	if c.zero < 0 {
		if i := slices.Index(p[:n], 0); i >= 0 {
			c.zero = c.read + int64(i)
		}
	}
	c.read += int64(n)
	if c.report != nil {
		c.report(c.read)
	}
	return n, err
}
