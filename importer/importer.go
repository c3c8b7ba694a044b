// Package importer reads the histories of other agent tools and stores them as contexts.
//
// A history is a file: a Claude Code transcript, a ChatGPT export, chat messages as JSON or JSON Lines. A
// record is one object of it that is a message: a line, a node of a tree, an element of an array. Every
// record becomes one stored message whose body is the record itself, verbatim; what cannot be read is a
// [Problem], told with its line, and the rest is imported.
//
// A branch of the history is found by rules that look only at earlier records, so that importing an early
// state of a file and then a later one gives what importing the later one alone gives. The context's id
// and the messages' ids are derived from the history: importing again finds what is there, adds what is
// new, and puts a history that went another way on a branch of its own.
//
// The package never mixes two histories on one branch, never changes a record, never holds more of a file
// in memory than one record (of a ChatGPT export, or of an object with "messages": one conversation) and a
// batch to store, and never follows a symbolic link out of a folder it is told to walk.
package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Format is a kind of history.
type Format string

// The formats. Auto looks at the content.
const (
	Auto       Format = "auto"
	ClaudeCode Format = "claude-code"
	ChatGPT    Format = "chatgpt"
	OpenAI     Format = "openai"
	JSONL      Format = "jsonl"

	// Recognised, so that they are not taken for something else, and refused with [ErrNotYet].
	Codex    Format = "codex"
	OpenCode Format = "opencode"
	Gemini   Format = "gemini"
)

// Formats are all formats, in the order of a help text.
func Formats() []Format {
	return []Format{Auto, ClaudeCode, Codex, ChatGPT, OpenCode, Gemini, OpenAI, JSONL}
}

var (
	// ErrFormat is wrapped by errors about files that are no history of a known format.
	ErrFormat = errors.New("not a history of a known format")
	// ErrNotYet is wrapped by errors about formats that a later release will import.
	ErrNotYet = errors.New("can be imported in a later release")
	// ErrEmpty is wrapped by errors about files in which there is no message.
	ErrEmpty = errors.New("no message in it")
	// ErrTooLarge is wrapped by errors, and named in problems, about records above [Options.MaxRecord].
	ErrTooLarge = errors.New("record too large")
)

// DefaultMaxRecord is the largest record that is read where the options do not say otherwise, in bytes.
const DefaultMaxRecord = 256 << 20

// Options says how to import. The zero value is good.
type Options struct {
	Format    Format // "" is Auto
	MaxRecord int64  // largest record, in bytes; 0 is DefaultMaxRecord

	// Progress is told how many bytes of the file have been read.
	Progress func(read, size int64)
	// Problem is told of what cannot be imported, as it is met.
	Problem func(Problem)
}

// Problem is a part of a file that could not be imported.
type Problem struct {
	Path   string
	Line   int64 // 1-based
	Reason string
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Reason) }

// Result tells of one conversation of a file.
type Result struct {
	Path     string
	Format   Format
	Context  uuid.UUID // uuid.Nil where there is no conversation to tell of
	Title    string
	Branches int   // of the context
	Messages int64 // records of the file: stored by now, or before
	Added    int64
	Skipped  int64 // there already
	Problems int64 // told to Options.Problem while this conversation was read
}

// Import reads one file and stores its conversations. It yields a result for each as it is done. An error
// comes with the result of the conversation that it is about, as far as that got (what it says was added
// is stored), or with one without Context where it is about the file; after an error about one conversation
// of several the others follow. Errors wrap [ErrFormat], [ErrNotYet], [ErrEmpty], what the store returned, or
// that of the file system.
func Import(ctx context.Context, store Store, path string, o Options) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		j, err := open(ctx, store, path, o, yield)
		if err != nil {
			yield(Result{Path: path, Format: o.Format}, err)
			return
		}
		defer j.file.Close()
		j.run()
	}
}

// job is the import of one file.
type job struct {
	ctx    context.Context
	store  Store
	path   string
	file   *os.File
	size   int64 // as it was when opened: a session that is still being written grows under our hands
	format Format
	layout layout
	o      Options
	yield  func(Result, error) bool

	problems int64 // since the last result
	results  int
	stopped  bool // the caller wants no more
}

func open(ctx context.Context, store Store, path string, o Options, yield func(Result, error) bool) (*job, error) {
	if o.MaxRecord <= 0 {
		o.MaxRecord = DefaultMaxRecord
	}
	// Looked at before it is opened: opening a pipe waits for a writer.
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: not a regular file", path, fs.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	j := &job{ctx: ctx, store: store, path: path, file: f, size: st.Size(), o: o, yield: yield}
	if err := j.detect(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

func (j *job) run() {
	var err error
	switch j.format {
	case ClaudeCode:
		err = j.claude()
	case ChatGPT:
		err = j.chatGPT()
	default:
		err = j.chat()
	}
	switch {
	case j.stopped:
	case err != nil:
		j.yield(j.result(), err)
	case j.results == 0:
		j.yield(j.result(), fmt.Errorf("%s: %w", j.path, ErrEmpty))
	}
}

// result is one without a conversation.
func (j *job) result() Result {
	return Result{Path: j.path, Format: j.format, Problems: j.problems}
}

// emit hands out a result and says whether to go on.
func (j *job) emit(r Result, err error) bool {
	r.Problems, j.problems = j.problems, 0
	j.results++
	if !j.yield(r, err) {
		j.stopped = true
	}
	return !j.stopped
}

func (j *job) report(line int64, reason string) {
	j.problems++
	if j.o.Problem != nil {
		j.o.Problem(Problem{j.path, line, reason})
	}
}

// reader is the file from its beginning, as far as it went when it was opened.
func (j *job) reader(progress func(read, size int64)) io.Reader {
	return &metered{vfs.FileOf(j.file), 0, j.size, progress}
}

// metered reads a file and tells how far it is. Of a part that was never written, and so reads as zeros, it gives only the first ones.
type metered struct {
	file       vfs.File
	read, size int64
	progress   func(read, size int64)
}

func (m *metered) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), m.size-m.read)]
	if len(p) == 0 {
		return 0, io.EOF
	}
	n, err := m.file.ReadAt(p, m.read)
	m.read += int64(n)
	if n > 0 && p[n-1] == 0 {
		m.read = vfs.NextData(m.file, m.read, m.size)
	}
	if n > 0 && m.progress != nil {
		m.progress(m.read, m.size)
	}
	return n, err
}
