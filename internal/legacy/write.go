package legacy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Sink receives a context part by part, in the order of writing: its members, with the nodes and the branches in their
// places. It reads each sequence once, from beginning to end.
type Sink interface {
	Member(name, value jsontext.Value) error
	Pool(nodes iter.Seq2[Node, error]) error
	Branches(branches iter.Seq2[ListedBranch, error]) error
	// Files is Pool for a split context whose context.json has no pool. It reports whether it wrote one.
	Files(nodes iter.Seq2[Node, error]) (made bool, err error)
	// Prompt receives the system prompt that a split context has in a file; nil if it has none.
	Prompt(v jsontext.Value) error
}

// ListedBranch is a branch to write.
type ListedBranch struct {
	Name    jsontext.Value
	Members Members // the member without a value is the list
	List    iter.Seq2[jsontext.Value, error]
}

// Encoder is a [Sink] that writes a monolithic file, indented as by the old program.
type Encoder struct {
	w *bufio.Writer
	e *jsontext.Encoder
}

// NewEncoder returns an encoder that writes to w. Close ends the file.
func NewEncoder(w io.Writer) (*Encoder, error) {
	b := bufio.NewWriterSize(w, 256<<10)
	e := jsontext.NewEncoder(b, append([]jsontext.Options{jsontext.Multiline(true), jsontext.WithIndent("  ")}, message.Verbatim...)...)
	return &Encoder{b, e}, e.WriteToken(jsontext.BeginObject)
}

// Member implements [Sink].
func (e *Encoder) Member(name, value jsontext.Value) error {
	return errors.Join(e.e.WriteValue(name), e.e.WriteValue(value))
}

// Prompt implements [Sink]. It writes a member, the only place for the prompt in a monolithic file.
func (e *Encoder) Prompt(v jsontext.Value) error {
	if v == nil {
		return nil
	}
	return e.Member(Quote("system_prompt"), v)
}

// Pool implements [Sink].
func (e *Encoder) Pool(nodes iter.Seq2[Node, error]) error {
	return e.object(Quote(NamePool), func() error {
		for n, err := range nodes {
			if err == nil {
				err = e.Member(n.Key, n.Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Files implements [Sink]. It writes a pool, the only place for nodes in a monolithic file.
func (e *Encoder) Files(nodes iter.Seq2[Node, error]) (made bool, err error) {
	return true, e.Pool(nodes)
}

// Branches implements [Sink].
func (e *Encoder) Branches(branches iter.Seq2[ListedBranch, error]) error {
	return e.object(Quote(NameBranches), func() error {
		for b, err := range branches {
			if err == nil {
				err = e.object(b.Name, func() error { return e.branch(&b) })
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *Encoder) branch(b *ListedBranch) error {
	for _, m := range b.Members {
		if m.Value != nil {
			if err := e.Member(m.Name, m.Value); err != nil {
				return err
			}
			continue
		}
		if err := errors.Join(e.e.WriteValue(m.Name), e.e.WriteToken(jsontext.BeginArray)); err != nil {
			return err
		}
		for id, err := range b.List {
			if err == nil {
				err = e.e.WriteValue(id)
			}
			if err != nil {
				return err
			}
		}
		if err := e.e.WriteToken(jsontext.EndArray); err != nil {
			return err
		}
	}
	return nil
}

func (e *Encoder) object(name jsontext.Value, f func() error) error {
	if err := errors.Join(e.e.WriteValue(name), e.e.WriteToken(jsontext.BeginObject)); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return e.e.WriteToken(jsontext.EndObject)
}

// Close ends the JSON and flushes it. It does not close the underlying writer.
func (e *Encoder) Close() error {
	if err := e.e.WriteToken(jsontext.EndObject); err != nil {
		return err
	}
	return e.w.Flush()
}

// Write writes a monolithic file whole or not at all; fill writes to its sink. A taken name fails with fs.ErrExist.
//
// Crash order: the content is durable under a temporary name before the rename, which is durable before Write returns.
func Write(fsys vfs.FS, name string, fill func(Sink) error) error {
	tmp := vfs.TemporaryName(name)
	err := writeFile(fsys, tmp, fill)
	if err == nil {
		err = fsys.RenameNew(tmp, name)
	}
	if err != nil {
		_ = fsys.Remove(tmp)
		return err
	}
	return fsys.SyncDir(".")
}

func writeFile(fsys vfs.FS, name string, fill func(Sink) error) (err error) {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e, err := NewEncoder(f)
	if err == nil {
		err = fill(e)
	}
	if err == nil {
		err = e.Close()
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// WriteFolder writes the folder of a split context, as [Write] does a file.
func WriteFolder(fsys vfs.FS, name string, fill func(Sink) error) error {
	tmp := "." + name + "." + uuid.NewString() + ".tmp"
	err := writeFolder(fsys, tmp, fill)
	if err == nil {
		if _, lerr := fsys.Lstat(name); lerr == nil {
			err = &fs.PathError{Op: "write", Path: name, Err: fs.ErrExist}
		} else {
			err = fsys.Rename(tmp, name)
		}
	}
	if err != nil {
		_ = vfs.RemoveAll(fsys, tmp)
		return err
	}
	return fsys.SyncDir(".")
}

func writeFolder(fsys vfs.FS, name string, fill func(Sink) error) error {
	for _, dir := range []string{name, name + "/" + PoolFolder} {
		if err := fsys.Mkdir(dir); err != nil {
			return err
		}
	}
	err := writeFile(fsys, name+"/"+ContextFile, func(s Sink) error {
		return fill(&folderSink{Encoder: s.(*Encoder), fs: fsys, name: name})
	})
	if err != nil {
		return err
	}
	if err := fsys.SyncDir(name + "/" + PoolFolder); err != nil {
		return err
	}
	return fsys.SyncDir(name)
}

// folderSink writes the parts of a split context that have files, and the rest to context.json.
type folderSink struct {
	*Encoder
	fs   vfs.FS
	name string
}

func (s *folderSink) Pool(nodes iter.Seq2[Node, error]) error {
	return s.Encoder.Pool(func(yield func(Node, error) bool) {
		for n, err := range nodes {
			if err == nil && n.InFile {
				if err = s.node(n); err == nil {
					continue
				}
			}
			if !yield(n, err) || err != nil {
				return
			}
		}
	})
}

// Files implements [Sink].
func (s *folderSink) Files(nodes iter.Seq2[Node, error]) (made bool, err error) {
	for n, err := range nodes {
		if err == nil {
			err = s.node(n)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (s *folderSink) node(n Node) error {
	stem, ok := Text(n.Key)
	if !ok || !plainName(stem) {
		return fmt.Errorf("%w: no file can be named after the node %s", fs.ErrInvalid, n.Key)
	}
	return s.write(PoolFolder+"/"+stem+nodeEnd, n.Value)
}

// Prompt implements [Sink].
func (s *folderSink) Prompt(v jsontext.Value) error {
	if v == nil {
		return nil
	}
	return s.write(PromptFile, v)
}

func (s *folderSink) write(name string, v jsontext.Value) error {
	pretty, err := jsontext.AppendFormat(
		nil,
		v,
		append([]jsontext.Options{jsontext.Multiline(true), jsontext.WithIndent("  ")}, message.Verbatim...)...)
	if err != nil {
		return damaged("%v", err)
	}
	return vfs.WriteSynced(s.fs, s.name+"/"+name, append(pretty, '\n'))
}

// maxName is the longest file name that every file system accepts, in bytes.
const maxName = 255

// plainName reports whether a text is a valid file name on every system.
func plainName(s string) bool {
	if s == "" || s[0] == '.' || len(s)+len(nodeEnd) > maxName {
		return false
	}
	for _, c := range s {
		if c < 0x20 || c == 0x7f || c == 0xfffd {
			return false
		}
		switch c {
		case '/', '\\', ':', '*', '?', '"', '<', '>', '|':
			return false
		}
	}
	return true
}

var (
	_ Sink = (*Encoder)(nil)
	_ Sink = (*folderSink)(nil)
)
