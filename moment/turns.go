package moment

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/sentence"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// Text is the prose of one message.
type Text struct {
	ID    uuid.UUID // of the message
	Voice string    // "user", "assistant", or [Commit]
	At    time.Time
	Text  string
	Acts  bool // the assistant calls tools with it, or right after it
	Edits bool // one of these calls changes a file, or commits
}

// Commit is the voice of the message of a commit, which the assistant wrote.
const Commit = "commit"

// answered begins the result of a tool that asks the person.
const answered = "User has answered your questions:"

// turn is a text in its place in the conversation.
type turn struct {
	Text
	*task
	before *turn // the turn before
	answer bool  // the last text of the assistant before the next prompt
	works  bool  // the assistant calls tools in this conversation
	alone  bool  // no person takes part: a program gives the prompts, and the output of commands
}

// task is what a person asks for, and the work on it.
type task struct {
	prompt *turn // nil before the first one
	edited bool  // the assistant changed files
	done   bool  // the last answer says that it succeeded
}

// minPrompt is the number of words of a prompt that begins a task: "continue" and "yes" continue the task before.
const minPrompt = 3

// turns returns the texts of people and of the assistant. What an agent tool says in the name of a person is none of them.
func turns(texts []Text) []turn {
	all := make([]turn, 0, len(texts))
	for _, t := range texts {
		if t.Voice != transcript.User || !isAside(t.Text) {
			all = append(all, turn{Text: t})
		}
	}
	alone := slices.ContainsFunc(texts, func(t Text) bool { return observation.MatchString(t.Text) })
	works := alone || slices.ContainsFunc(texts, func(t Text) bool { return t.Acts })
	current := &task{}
	var before *turn
	for i := range all {
		t := &all[i]
		t.before = before
		if t.Voice != Commit {
			if before != nil && t.Voice == transcript.User {
				before.end()
			}
			before = t
		}
		if t.Voice == transcript.User && (current.prompt == nil || sentence.Count(t.Text.Text) >= minPrompt) {
			current = &task{prompt: t}
		}
		t.task, t.works, t.alone = current, works, alone
		current.edited = current.edited || t.Edits
	}
	if before != nil {
		before.end()
	}
	return all
}

// end marks the last text before a prompt.
func (t *turn) end() {
	if t.answer = t.Voice == transcript.Assistant; t.answer {
		t.done = succeeded().MatchString(t.Text.Text)
	}
}

var (
	// aside begins what a tool adds while the assistant works, and injected what it says between two tasks.
	aside    = regexp.MustCompile(`^(?:<(?:system|task|user)-\w+>|Base directory for this skill|# [A-Z]+\.md\b)`)
	injected = regexp.MustCompile(`^(?:<[\w-]+>|\[Request interrupted|This session is being continued from a previous|` +
		`Summarize the task tool output)`)
	// observation is the output of a command, in the role of the user: agents without tools have it.
	observation = regexp.MustCompile(`(?m)^\(Current directory: |^bash-\$|^<returncode>|^Observation:`)
	// succeeded are the words of an answer that says that something works.
	succeeded = words(`✅|✓`, `\b(?:pass(?:es|ed|ing)?|green|works?|working|fixed|committed|pushed|merged|verified|done|`+
		`resolved|succeed(?:s|ed)|clean)\b`)
)

// isAside reports whether an agent tool put a text into the conversation that no person typed, and that ends no task.
func isAside(text string) bool {
	return message.IsReminder(text) || aside.MatchString(strings.TrimSpace(text)) || observation.MatchString(text)
}

// maxPrompt is the number of words of the longest prompt that a person types rather than pastes.
const maxPrompt = 400

// typed reports whether a person typed a prompt.
func (t *turn) typed() bool {
	return t.Voice == transcript.User && !injected.MatchString(strings.TrimSpace(t.Text.Text)) && sentence.Count(t.Text.Text) <= maxPrompt
}

// find is a moment and how many signs it has.
type find struct {
	Moment
	signs int
}

func (t *turn) find(kind Type, signs int, content, background string, from ...uuid.UUID) find {
	return find{Moment{At: t.At, Type: kind, Content: content, Background: background, From: append([]uuid.UUID{t.ID}, from...)}, signs}
}
