// Package importer reads the histories of other agent tools and stores them as contexts.
//
// A history is a file: a Claude Code transcript, a ChatGPT export, or chat messages as JSON or JSON Lines. Here, a
// *record* is the object in the file that represents one message, not a journal record: a line, a node of a tree, an
// element of an array. Every record becomes one stored message whose body is the record itself, verbatim. The importer
// reports each unreadable part as a [Problem] with its line, and imports the rest.
//
// The rules that find branches look only at earlier records. So importing an early state of a file and then a later one
// has the same result as importing the later one alone. The ids of the context and of its messages are derived from the
// history. A repeated import finds the stored messages, and adds new ones. If a history has diverged, its new messages
// get a branch.
//
// The package never mixes two histories on one branch and never changes a record. It holds at most one batch and one
// record in memory. For a ChatGPT export, or an object with "messages", the unit is a conversation instead of a record.
// It never follows a symbolic link out of a folder that it walks.
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

// Formats of histories. Auto detects the format by the content.
const (
	Auto       Format = "auto"
	ClaudeCode Format = "claude-code"
	ChatGPT    Format = "chatgpt"
	OpenAI     Format = "openai"
	JSONL      Format = "jsonl"

	// Recognised, so that no other format claims them, and refused with [ErrNotYet].
	Codex    Format = "codex"
	OpenCode Format = "opencode"
	Gemini   Format = "gemini"
)

// Formats returns all formats, in the order of a help text.
func Formats() []Format {
	return []Format{Auto, ClaudeCode, Codex, ChatGPT, OpenCode, Gemini, OpenAI, JSONL}
}

var (
	// ErrFormat means that a file is not a history of a known format.
	ErrFormat = errors.New("not a history of a known format")
	// ErrNotYet means that a later release will import the format.
	ErrNotYet = errors.New("not supported yet")
	// ErrEmpty means that a file contains no message.
	ErrEmpty = errors.New("it contains no message")
	// ErrTooLarge means that a record exceeds [Options.MaxRecord]. Problems name it too.
	ErrTooLarge = errors.New("record too large")
)

// DefaultMaxRecord is the default of [Options.MaxRecord], in bytes.
const DefaultMaxRecord = 256 << 20

// Options configure an import. The zero value is usable.
type Options struct {
	Format    Format // "" is Auto
	MaxRecord int64  // largest record, in bytes; 0 is DefaultMaxRecord

	// Progress receives the number of bytes read so far.
	Progress func(read, size int64)
	// Problem receives each part that cannot be imported, as soon as the importer meets it.
	Problem func(Problem)
}

// Problem is a part of a file that was not imported.
type Problem struct {
	Path   string
	Line   int64 // 1-based
	Reason string
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Reason) }

// Result is the result of one conversation of a file.
type Result struct {
	Path     string
	Format   Format
	Context  uuid.UUID // uuid.Nil if there is no conversation
	Title    string
	Branches int   // of the context
	Messages int64 // records of the file that are stored, now or before
	Added    int64
	Skipped  int64 // stored before
	Problems int64 // passed to Options.Problem during this conversation
}

// Import reads one file and stores its conversations. It yields a result for each, as soon as that is complete. An
// error about a conversation comes with its result so far: records counted as added are stored. The other conversations
// follow. An error about the file comes with a result without Context. Errors wrap [ErrFormat], [ErrNotYet],
// [ErrEmpty], an error of the store, or an error of the file system.
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
	size   int64 // when opened: an active session's file keeps growing
	format Format
	layout layout
	o      Options
	yield  func(Result, error) bool

	problems int64 // since the last result
	results  int
	stopped  bool // the caller stopped the iteration
}

func open(ctx context.Context, store Store, path string, o Options, yield func(Result, error) bool) (*job, error) {
	if o.MaxRecord <= 0 {
		o.MaxRecord = DefaultMaxRecord
	}
	// Stat before the open: opening a pipe waits for a writer.
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

// result is a result without a conversation.
func (j *job) result() Result {
	return Result{Path: j.path, Format: j.format, Problems: j.problems}
}

// emit yields a result and reports whether to continue.
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

// reader reads the file from the beginning up to its size when opened.
func (j *job) reader(progress func(read, size int64)) io.Reader {
	return &progressReader{vfs.FileOf(j.file), 0, j.size, progress}
}

// records returns the records of the file. report and progress may be nil.
func (j *job) records(report func(line int64, reason string), progress func(read, size int64)) records {
	if j.layout == byLine {
		return newLines(j.reader(progress), j.o.MaxRecord, report)
	}
	return newValues(j, report, progress)
}

// progressReader reads a file and reports its progress. Of an unwritten part, which reads as zeros, it returns only the
// first ones.
type progressReader struct {
	file       vfs.File
	read, size int64
	progress   func(read, size int64)
}

func (m *progressReader) Read(p []byte) (int, error) {
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
