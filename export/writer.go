package export

import (
	"io"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/conversation"
	"github.com/ctxdir/ctxdir/redact"
	"github.com/ctxdir/ctxdir/transcript"
)

// Format is a form of file.
type Format string

// JSONL is JSON Lines: each message verbatim.
const JSONL Format = "jsonl"

// The forms of providers and other tools. OpenAI and Anthropic are messages that these APIs take, with each tool call
// followed by its result. ClaudeCode, Codex and ChatGPT are what these tools keep; records of the same tool stay verbatim.
const (
	OpenAI     Format = "openai"
	Anthropic  Format = "anthropic"
	ClaudeCode Format = "claude-code"
	Codex      Format = "codex"
	ChatGPT    Format = "chatgpt"
)

// The formats for reading. Thoughts and tool calls with their results are folded. A page in HTML needs no other file:
// images are inside, and nothing in it runs.
const (
	HTML     Format = "html"
	Markdown Format = "markdown"
)

// Formats are all formats.
var Formats = []Format{JSONL, Markdown, HTML, OpenAI, Anthropic, ClaudeCode, Codex, ChatGPT}

// ForPeople reports whether a format is for reading.
func (f Format) ForPeople() bool { return f == HTML || f == Markdown }

// Redactable reports whether secrets can be replaced in a format.
func (f Format) Redactable() bool { return f.ForPeople() || f == JSONL }

// The forms of tool calls in HTML and Markdown.
const (
	ToolsNone  = "none"
	ToolsShort = "short" // one line without results
	ToolsFull  = "full"
)

// Options say what a file has.
type Options struct {
	Format Format
	All    bool   // bookkeeping of agent tools, too; JSON Lines always has it
	Tools  string // one of the forms of tool calls; "" is [ToolsFull]
	// Redact says what to replace; nil replaces nothing. JSON Lines then keeps references to binary payloads: the content
	// of a file is not searched.
	Redact *redact.Options
	// Here returns what a folder of another machine is on this one, for the folder of a session of Claude Code or Codex; nil
	// leaves it as it is. See [ctxdir.Settings.Here].
	Here func(path string) string
	// Found is called for each finding, with the message at which the file shows it: nil for the title and names of
	// branches. It may be nil. [redact.Options].Found is not called.
	Found func(m *ctxdir.Message, text string, f redact.Finding)
	// Missing is called for each message that is not in the file completely; it may be nil.
	Missing func(m *ctxdir.Message, err error)
	// Progress is called before each message; it may be nil.
	Progress func(m *ctxdir.Message)
	// Omitted is called at the end, with what the format cannot hold; it may be nil.
	Omitted func(o Omissions)
}

// writer writes one file: begin, then messages, then end.
type writer struct {
	w        io.Writer
	o        Options
	redactor *redact.Redactor // nil replaces nothing
	quiet    *redact.Redactor // for what is made of redacted texts
	format   format           // of files for people, else nil
	form     form             // of providers and tools, else nil
	reader   conversation.Reader
	at       *ctxdir.Message
}

// format writes what people read. Its texts are those of package redact.
type format interface {
	begin(title redact.Text, id string, branch redact.Text) error
	branch(name redact.Text, from int64) error // which the next turns are of
	turn(t *turn) error
	end() error
}

// text is a text of a message after redaction. One that is JSON stays JSON.
func (x *writer) text(text string) redact.Text {
	if begin := strings.TrimLeft(text, " \t\r\n"); begin != "" && (begin[0] == '{' || begin[0] == '[') {
		return x.redactor.JSON([]byte(text))
	}
	return x.redactor.Text(text)
}

// turn is a message with the results of its calls, after redaction.
type turn struct {
	position    int64
	voice       string // one of the voices, or ""
	speaker     redact.Text
	at          time.Time
	continues   bool
	parts       []part
	unavailable *redact.Text // why the message cannot be read
}

type part struct {
	kind    transcript.Kind
	name    redact.Text
	text    redact.Text
	failed  bool
	summary redact.Text // of a call
	changes bool        // the call changes a file
	diff    []redact.Text
	changed string // as in "+3 −1"
	results []part
	media   string      // the type of an image that a page shows, or ""
	data    redact.Text // of the image, in base64
}
