package transcript

import (
	"slices"
	"strings"
)

// Turn is a message as people read it: tool calls have their results.
type Turn[M any] struct {
	Message   M
	Voice     string
	Parts     []Part
	Continues bool // it follows a message of the same speaker, and one of the two only thinks or calls tools

	open  int // calls whose results did not come yet
	empty bool
}

const (
	// maxTurns and maxTurnBytes bound the messages that wait for results of tools.
	maxTurns     = 64
	maxTurnBytes = 8 << 20
)

// Turns joins tool calls with their results, which come in later messages. A message whose results all join calls is
// not shown itself.
type Turns[M any] struct {
	Show func(*Turn[M]) error // in the order of the messages

	waiting []*Turn[M]
	bytes   int
	last    string // the voice of the last turn shown
	thought bool   // that turn only thinks
}

// Add adds the next message. size is about what it holds in memory, in bytes.
func (t *Turns[M]) Add(m M, voice string, parts []Part, size int) error {
	turn := &Turn[M]{Message: m, Voice: voice}
	results := 0
	for _, p := range parts {
		if p.Kind == Result && t.join(p) {
			results++
			continue
		}
		if p.Kind == Call && p.ID != "" && p.Results == nil {
			turn.open++
		}
		turn.Parts = append(turn.Parts, p)
	}
	turn.empty = results > 0 && len(turn.Parts) == 0
	t.waiting, t.bytes = append(t.waiting, turn), t.bytes+size
	return t.show(t.bytes > maxTurnBytes)
}

// join gives a result to the call that waits for it: of several with one id, the last message's first.
func (t *Turns[M]) join(result Part) bool {
	if result.ID == "" {
		return false
	}
	for _, turn := range slices.Backward(t.waiting) {
		for i := range turn.Parts {
			if p := &turn.Parts[i]; p.Kind == Call && p.ID == result.ID && p.Results == nil {
				p.Results = []Part{result}
				turn.open--
				return true
			}
		}
	}
	return false
}

// Flush shows what waits.
func (t *Turns[M]) Flush() error { return t.show(true) }

// show shows the turns before the first one that waits for a result; with all, every one.
func (t *Turns[M]) show(all bool) error {
	for len(t.waiting) > 0 && (all || t.waiting[0].open == 0 || len(t.waiting) > maxTurns) {
		turn := t.waiting[0]
		t.waiting = t.waiting[1:]
		if turn.empty {
			continue
		}
		same := turn.Voice != "" && turn.Voice == t.last && len(turn.Parts) > 0
		turn.Continues = same && (t.thought || !slices.ContainsFunc(turn.Parts, speaks))
		t.last = turn.Voice
		t.thought = len(turn.Parts) > 0 && !slices.ContainsFunc(turn.Parts, func(p Part) bool { return p.Kind != Thought })
		if err := t.Show(turn); err != nil {
			return err
		}
	}
	if len(t.waiting) == 0 {
		t.bytes = 0
	}
	return nil
}

// speaks reports whether a part is more than a thought or the call of a tool.
func speaks(p Part) bool {
	return p.Kind != Thought && p.Kind != Call && (p.Kind != Text || strings.TrimSpace(p.Text) != "")
}
