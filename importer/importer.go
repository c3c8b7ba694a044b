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
	"io/fs"
	"iter"
	"os"
	"strings"
)

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
