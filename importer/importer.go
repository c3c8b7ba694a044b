// Package importer reads the histories of other agent tools and stores them as contexts.
//
// A history is a file, such as a session of Claude Code or an export of ChatGPT, or a folder with a file for each event;
// [Formats] lists all. Here, a *record* is the object in the file that represents one message, not a log record: a
// line, a node of a tree, an element of an array. Every record becomes one stored message whose body is the record
// itself, verbatim. Records that people do not read, and those that repeat others, get a role of their own. The
// importer reports each unreadable part as a [Problem] with its line, and imports the rest.
//
// A history is a log or a document. A tool appends to a log: the rules that find branches look only at earlier records,
// so importing an early state of a file and then a later one has the same result as importing the later one alone. A
// tool writes a document as a whole: a later state replaces what the earlier one said.
//
// The ids of the context and of its messages are derived from the history. A repeated import finds the stored messages,
// and adds new ones. If a history has diverged, its new messages get a branch.
//
// The package never mixes two histories on one branch and never changes a record. It holds at most one batch and one
// record in memory; of a document, one conversation. It never follows a symbolic link out of a folder that it walks.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// Format is a kind of history.
type Format string

// Formats of histories. Auto detects the format by the content.
const (
	Auto          Format = "auto"
	ClaudeCode    Format = "claude-code"
	Codex         Format = "codex"
	ChatGPT       Format = "chatgpt"
	OpenCode      Format = "opencode"
	Gemini        Format = "gemini"
	Copilot       Format = "copilot"
	Pi            Format = "pi"
	OpenHands     Format = "openhands"
	SWEAgent      Format = "swe-agent"
	MiniSWEAgent  Format = "mini-swe-agent"
	OpenAssistant Format = "oasst"
	LibreChat     Format = "librechat"
	OpenAI        Format = "openai"
	JSONL         Format = "jsonl"
)

// Formats returns all formats, in the order of a help text.
func Formats() []Format {
	return []Format{
		Auto, ClaudeCode, Codex, OpenCode, Gemini, Copilot, Pi, OpenHands, SWEAgent, MiniSWEAgent, ChatGPT, LibreChat, OpenAssistant,
		OpenAI, JSONL,
	}
}

var (
	// ErrFormat means that a file is not a history of a known format. An [UnknownError] says what it looks like.
	ErrFormat = errors.New("not a history of a known format")
	// ErrEmpty means that a file contains no message.
	ErrEmpty = errors.New("the file contains no messages")
	// ErrTooLarge means that a record exceeds [Options.MaxRecord]. Problems name it too.
	ErrTooLarge = errors.New("record too large")
)

// DefaultMaxRecord is the default of [Options.MaxRecord], in bytes.
const DefaultMaxRecord = 256 << 20

// Options configure an import. The zero value is usable.
type Options struct {
	Format    Format // "" is Auto
	MaxRecord int64  // largest record, in bytes; 0 is DefaultMaxRecord

	// Database reads the databases of opencode. Without it, an import refuses them. See package opencodedb.
	Database Database

	// Growing means that the tool may be writing to the file. What looks unfinished at its end, or is not a history yet, is
	// no problem: a later import reads it.
	Growing bool

	// Known lets the import pass over files that did not change since the store took them; nil to read every file. Files
	// with problems are not noted.
	Known Known

	// Progress receives the number of bytes read so far.
	Progress func(read, size int64)
	// Problem receives each part that cannot be imported, as soon as the importer meets it.
	Problem func(Problem)
}

// Database reads the sessions of a database in the form of an export. It reports the parts that it cannot read, and
// sessions of more than limit bytes.
type Database func(ctx context.Context, path string, limit int64, report func(reason string), session func(json.RawMessage) error) error

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
	Replaced int64 // stored before with another content; counted as skipped too

	// First is the first record that has a UUID of its own, uuid.Nil if there is none. A tool that copies a session to
	// continue it keeps these ids, so two contexts with one First hold the same records.
	First    uuid.UUID
	Problems int64 // passed to Options.Problem during this conversation

	Unchanged bool // Options.Known has the file: it was not read, and there is no other result
}

// Import reads one file and stores its conversations. It yields a result for each, as soon as that is complete. An
// error about a conversation comes with its result so far: records counted as added are stored. The other conversations
// follow. An error about the file comes with a result without Context. Errors wrap [ErrFormat],
// [ErrEmpty], an error of the store, or an error of the file system.
func Import(ctx context.Context, store Store, path string, o Options) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		var is sighting
		known := false
		if o.Known != nil {
			if is, known = sight(path, &o); known && o.isKnown(ctx, &is) {
				yield(Result{Path: path, Format: o.Format, Unchanged: true}, nil)
				return
			}
		}
		yield, complete := watchResults(yield)
		j, err := open(ctx, store, path, o, yield)
		if errors.Is(err, errUnfinished) {
			return
		}
		if err != nil {
			yield(Result{Path: path, Format: o.Format}, err)
			return
		}
		defer j.close()
		j.run()
		if contexts, ok := complete(); ok && known && j.problems == 0 {
			o.note(path, &is, contexts)
		}
	}
}

// job is the import of one file.
type job struct {
	ctx    context.Context
	store  Store
	path   string
	file   *os.File
	size   int64 // when opened: an active session's file keeps growing
	packed bool  // compressed with zstd
	skip   int64 // bytes before the content
	format Format
	layout layout

	storage  bool // a session of a storage folder of opencode
	database bool
	folder   *folderEvents
	o        Options
	yield    func(Result, error) bool

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
	if st.IsDir() {
		events, err := openFolder(path)
		if err != nil {
			return nil, err
		}
		return &job{ctx: ctx, store: store, path: path, folder: events, format: OpenHands, o: o, yield: yield}, nil
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: not a regular file", path, fs.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	j := &job{ctx: ctx, store: store, path: path, file: f, size: st.Size(), o: o, yield: yield}
	var magic [len(sqliteMagic)]byte
	n, _ := f.ReadAt(magic[:], 0)
	j.packed = strings.HasPrefix(string(magic[:n]), zstdMagic)
	if string(magic[:n]) == sqliteMagic {
		if j.format = OpenCode; o.Database == nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w: a database, but no database reader is set", path, ErrFormat)
		}
		j.database = true
		return j, nil
	}
	if err := j.detect(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

func (j *job) close() {
	if j.folder != nil {
		j.folder.root.Close()
		return
	}
	j.file.Close()
}

func (j *job) run() {
	err := j.read()
	switch {
	case j.stopped, errors.Is(err, errStop):
	case j.o.Growing && (err == nil || errors.Is(err, ErrEmpty)):
	case err != nil:
		j.yield(j.result(), err)
	case j.results == 0:
		j.yield(j.result(), fmt.Errorf("%s: %w", j.path, ErrEmpty))
	}
}

// read imports the file by its format.
func (j *job) read() error {
	if j.database {
		return j.o.Database(j.ctx, j.path, j.o.MaxRecord, func(reason string) { j.report(1, reason) }, func(export json.RawMessage) error {
			c, err := parseOpenCode(export)
			if err != nil {
				j.report(1, err.Error())
				return nil
			}
			return j.document(c, 1)
		})
	}
	if f, ok := logFormats[j.format]; ok {
		return j.log(f)
	}
	if parse, ok := documentFormats[j.format]; ok && !j.storage {
		if j.format == Gemini && j.layout == byLine {
			return j.gemini()
		}
		return j.documents(parse)
	}
	if j.storage {
		return j.openCodeFolder()
	}
	return j.chat()
}

var logFormats = map[Format]func() logFormat{
	ClaudeCode: newClaude, Codex: newCodex, Copilot: newCopilot, Pi: newPi, OpenHands: newOpenHands,
}

var documentFormats = map[Format]func(json.RawMessage) (*conversation, error){
	ChatGPT: parseChatGPT, OpenCode: parseOpenCode, Gemini: parseGemini, LibreChat: parseLibreChat,
	OpenAssistant: parseOpenAssistant, SWEAgent: parseSWEAgent, MiniSWEAgent: parseMiniSWEAgent,
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

// errUnfinished means that a growing file is not a history yet.
var errUnfinished = errors.New("the file has no complete record yet")

// unfinished reports whether an error about JSON only means that the file is being written.
func (j *job) unfinished(err error) bool { return j.o.Growing && errors.Is(err, io.ErrUnexpectedEOF) }

func (j *job) report(line int64, reason string) { j.problem(Problem{j.path, line, reason}) }

func (j *job) problem(p Problem) {
	j.problems++
	if j.o.Problem != nil {
		j.o.Problem(p)
	}
}

// reader reads the file from the beginning up to its size when opened. It decompresses a file packed with zstd.
func (j *job) reader(progress func(read, size int64)) io.Reader {
	r := &progressReader{vfs.FileOf(j.file), j.skip, j.size, progress}
	if !j.packed {
		return r
	}
	return &unpackReader{packed: r}
}

const (
	zstdMagic   = "\x28\xb5\x2f\xfd"
	sqliteMagic = "SQLite format 3\x00"

	// maxWindow limits the memory for decompression: a larger window is not a file of a tool.
	maxWindow = 128 << 20
)

// unpackReader decompresses zstd. Without concurrency the decoder holds no goroutine, so nothing has to close it.
type unpackReader struct {
	packed io.Reader
	d      *zstd.Decoder
}

func (u *unpackReader) Read(p []byte) (n int, err error) {
	if u.d == nil {
		u.d, err = zstd.NewReader(u.packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}
	if err == nil {
		n, err = u.d.Read(p)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("cannot decompress the file: %w", err)
	}
	return n, err
}

// records returns the records of the file. report and progress may be nil.
func (j *job) records(report func(line int64, reason string), progress func(read, size int64)) records {
	if j.folder != nil {
		return j.folder.records(j, report != nil)
	}
	if j.layout == byLine {
		l := newLines(j.reader(progress), j.o.MaxRecord, report)
		l.growing = j.o.Growing
		return l
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
