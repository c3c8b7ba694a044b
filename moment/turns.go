package moment

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
	"github.com/ctxdir/ctxdir/message"
	"github.com/ctxdir/ctxdir/transcript"
)

// turn is a text in its place in the conversation.
type turn struct {
	Text
	prompt *turn // what the person asked last
	before *turn // the turn before
	answer bool  // the last text of the assistant before the next prompt
	done   bool  // the answer of this task says that it succeeded
	works  bool  // the assistant calls tools in this conversation
	alone  bool  // no person takes part: a program gives the prompts, and the output of commands
	acted  bool  // the assistant called tools in this task
	mends  bool  // the text is about a fault
	mended bool  // the text begins by saying that one is mended
}

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
	var prompt, answer *turn
	for i := range all {
		t := &all[i]
		if i > 0 {
			t.before = &all[i-1]
		}
		if t.Voice == transcript.User {
			prompt = t
		}
		t.prompt, t.works, t.alone = prompt, works, alone
		t.mended = t.Voice == transcript.Assistant && mended.MatchString(t.Text.Text)
		t.mends = t.Voice == transcript.Assistant && faults.MatchString(t.Text.Text)
	}
	for i := len(all) - 1; i >= 0; i-- {
		t := &all[i]
		if t.Voice == transcript.User {
			answer = nil
			continue
		}
		if answer != nil && t.Acts {
			answer.acted = true
		}
		if answer == nil {
			answer, t.answer = t, true
			t.done = succeeded.MatchString(t.Text.Text)
		} else {
			t.done = answer.done
		}
	}
	return all
}

var (
	// aside begins what a tool adds while the assistant works, and injected what it says between two tasks.
	aside    = regexp.MustCompile(`^(?:<(?:system|task|user)-\w+>|Base directory for this skill|# [A-Z]+\.md\b)`)
	injected = regexp.MustCompile(`^(?:<[\w-]+>|\[Request interrupted|This session is being continued from a previous|` +
		`Summarize the task tool output)`)
	// observation is the output of a command, in the role of the user: agents without tools have it.
	observation = regexp.MustCompile(`(?m)^\(Current directory: |^bash-\$|^<returncode>|^Observation:`)
	mended      = regexp.MustCompile(`(?i)^\W*(?:(?:done|great|perfect|yes)\W+)?(?:i(?:'ve|’ve| have)? )?fixed\b`)
	faults      = regexp.MustCompile(`(?i)\b(?:fixed|fixes|the fix|bugs?|root cause)\b`)
	// succeeded are the words of an answer that says that something works.
	succeeded = regexp.MustCompile(`(?i)✅|✓|\b(?:pass(?:es|ed|ing)?|green|works?|working|fixed|committed|pushed|merged|` +
		`verified|done|resolved|` +
		`succeed(?:s|ed)|clean)\b`)
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
