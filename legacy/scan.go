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

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// File is an open legacy context: what it consists of is known, and its nodes can be read one by one.
type File struct {
	Format   Format
	Members  Members  // of the whole; those with the pool and the branches have no value
	Branches []Branch // in the order of the file
	Prompt   jsontext.Value
	Size     int64    // of all its files, in bytes
	Digest   [32]byte // of all its files

	fs    vfs.FS
	name  string
	limit int64
	file  vfs.File // of a monolithic one
	nodes []node
	byKey []int32          // nodes in the order of their keys
	files map[int32]string // of a split one: those whose names are no UUIDs
	read  func(done int64)
	stop  func() error

	looked     stamp
	mark       int64 // how long the byte order mark is that the file begins with
	pool       bool  // there is an object message_pool
	branchesAt int64 // where the value begins, -1 without
	inline     bool  // of a split one: there are nodes in context.json
}

// Branch is a branch of a legacy context.
type Branch struct {
	Name    jsontext.Value // its key, a JSON string
	Members Members        // the one with the list, if that is an array, has no value
	Nodes   []int32        // what the list names, in order, without what the pool does not have
	Missing []Missing      // that
}

// Missing is an element of a list that is no key of the pool.
type Missing struct {
	At int            `json:"at"` // elements before it that are in the pool
	ID jsontext.Value `json:"id"` // as it is spelled
}

// node says where a node is.
type node struct {
	key   key
	off   int64  // in the file: behind what stands before its key
	size  uint32 // from there to the end of its value
	flags uint8
}

const (
	canonical = 1 << iota // the key is a UUID
	shadowed              // a later node has the same key
	inFile                // it has a file of its own
)

// Options changes how a context is opened.
type Options struct {
	Limit    int64            // the largest node, in bytes; 0: 256 MiB
	Progress func(read int64) // is told how many bytes of it were read; nil for nobody
	Stop     func() error     // is asked now and then; an error ends it. Nil for nobody
}

// Open reads a legacy context to its end without keeping it. It fails with [ErrNotLegacy], [ErrDamaged], [ErrTooLarge], or an error of the file system.
func Open(fsys vfs.FS, name string, o Options) (*File, error) {
	format, err := Detect(fsys, name)
	if err != nil {
		return nil, err
	}
	f := &File{Format: format, fs: fsys, name: name, limit: o.Limit, read: o.Progress, stop: o.Stop, branchesAt: -1, files: map[int32]string{}}
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
		err = damaged("it has no %q, or that is no object", namePool)
	case len(f.nodes) == 0 && path.Base(name) == ContextFile:
		err = damaged("a split context without its messages")
	}
	if err == nil {
		f.arrange()
		err = f.scanBranches()
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	sum.Sum(f.Digest[:0])
	return f, nil
}

// Close lets go of the file.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Len is the number of nodes.
func (f *File) Len() int { return len(f.nodes) }

// ContextID is the id of the context: its own where that is a UUID, else one that is made of it.
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

// scan reads the members of the file, and where the nodes are.
func (f *File) scan(name string, sum hash.Hash) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	f.looked.add(name, info)
	r, mark := withoutMark(io.TeeReader(f.file, sum))
	f.mark = mark
	in := &counted{r: r, limit: f.limit + 1<<20, zero: -1, tell: f.read, stop: f.stop}
	d := jsontext.NewDecoder(in, verbatim...)
	err = f.scanObject(d, in)
	f.Size = f.mark + in.read
	return readable(err, in)
}

// withoutMark passes over the byte order mark that some programs begin a file in UTF-8 with. It is no part of the JSON.
func withoutMark(r io.Reader) (io.Reader, int64) {
	const mark = "\ufeff"
	b := make([]byte, len(mark))
	n, _ := io.ReadFull(r, b) // an error comes again
	if string(b) == mark {
		return r, int64(n)
	}
	return io.MultiReader(bytes.NewReader(b[:n]), r), 0
}

// readable says what is wrong with a file that could not be read as JSON.
func readable(err error, in *counted) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case err == nil, errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, errLimit):
		return fmt.Errorf("%w: more than %d bytes from byte %d on", ErrTooLarge, in.limit, in.floor)
	case errors.Is(err, io.EOF) && in.read == 0:
		return damaged("the file is empty")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("the file ends in the middle of a value")
	case errors.As(err, &syntactic):
		if in.zero >= 0 {
			return damaged("zero bytes from byte %d on", in.zero)
		}
		return damaged("no JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	}
	return err
}

func (f *File) scanObject(d *jsontext.Decoder, in *counted) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		if err == nil {
			err = damaged("it is no object")
		}
		return err
	}
	for d.PeekKind() == '"' {
		m, err := nextMember(d, in)
		if err != nil {
			return err
		}
		switch kind := d.PeekKind(); {
		case m.Is(namePool) && kind == '{':
			if f.pool {
				return damaged("%q stands there twice", namePool)
			}
			f.pool = true
			err = f.scanPool(d, in)
		case m.Is(NameBranches) && kind == '{':
			if f.branchesAt >= 0 {
				return damaged("%q stands there twice", NameBranches)
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
		return damaged("something follows the context, at byte %d", d.InputOffset())
	default:
		return err
	}
}

// nextMember reads the name of the next member of an object.
func nextMember(d *jsontext.Decoder, in *counted) (m Member, err error) {
	in.floor = d.InputOffset()
	raw, err := d.ReadValue()
	if err == nil {
		m.Name, err = compacted(raw)
	}
	return m, err
}

// shallowNext reads a value that is no message.
func shallowNext(d *jsontext.Decoder) (jsontext.Value, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	return shallow(value)
}

// skipMembers reads over the members of an object; each is within the limit.
func skipMembers(d *jsontext.Decoder, in *counted) error {
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

// scanPool notes where the nodes are.
func (f *File) scanPool(d *jsontext.Decoder, in *counted) error {
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
			return fmt.Errorf("%w: %d bytes at byte %d, the limit is %d", ErrTooLarge, size, off, f.limit)
		}
		n := node{key: k, off: off, size: uint32(size)}
		if isID {
			n.flags |= canonical
		}
		f.nodes = append(f.nodes, n)
	}
	if len(f.nodes) > math.MaxInt32-1 {
		return fmt.Errorf("%w: %d nodes", ErrTooLarge, len(f.nodes))
	}
	_, err := d.ReadToken()
	return err
}

// arrange sorts the nodes for look-up, and marks those whose key a later one has.
func (f *File) arrange() {
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

// run returns where in byKey the nodes of a key are.
func (f *File) run(k key) (from, to int) {
	from = sort.Search(len(f.byKey), func(i int) bool { return slices.Compare(f.nodes[f.byKey[i]].key[:], k[:]) >= 0 })
	for to = from; to < len(f.byKey) && f.nodes[f.byKey[to]].key == k; to++ {
	}
	return from, to
}

// lookup returns the node that a key means: the last one that has it.
func (f *File) lookup(k key) (int32, bool) {
	i := sort.Search(len(f.byKey), func(i int) bool { return slices.Compare(f.nodes[f.byKey[i]].key[:], k[:]) > 0 })
	if i == 0 || f.nodes[f.byKey[i-1]].key != k {
		return 0, false
	}
	return f.byKey[i-1], true
}

// counted counts what is read, and fails where more than limit bytes behind floor are wanted: a value that never ends stays out of
// memory.
type counted struct {
	r           io.Reader
	read, floor int64
	limit       int64
	zero        int64 // where the first zero byte was, -1 without one
	tell        func(int64)
	stop        func() error
}

var errLimit = errors.New("limit")

func (c *counted) Read(p []byte) (int, error) {
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
	if c.tell != nil {
		c.tell(c.read)
	}
	return n, err
}
