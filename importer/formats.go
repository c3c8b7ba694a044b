package importer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
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

// Known remembers which histories a store holds completely. It is a cache: an import reads a history that it does not
// know.
type Known interface {
	// Has reports whether this state of a history was noted, and every context that it fed is as the import left it.
	Has(ctx context.Context, h History) bool
	// Note remembers a history, whose records are durable in these contexts.
	Note(h History, contexts []uuid.UUID)
}

// History is a state of a history, without its content: checksums of its path, and of sizes, times, the end of the file
// and the options of the import.
type History struct{ Path, State [sha256.Size]byte }
