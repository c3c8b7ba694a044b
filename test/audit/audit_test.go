package audit

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/test/writer"
	"github.com/google/uuid"
)

// told is a store with two messages on "main" and one on a branch, and an account that says so.
func told(t *testing.T) (dir string, shared uuid.UUID, steps []writer.Step) {
	t.Helper()
	ctx := context.Background()
	dir = filepath.Join(t.TempDir(), "store")
	s, err := ctxdir.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	own, err := c.Active().Fork(ctx, "w1-alt", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []writer.State{writer.Begun, writer.Done} {
		steps = append(steps, writer.Step{State: state, Op: writer.New, Context: c.ID(), Branch: own.Name()})
	}
	for _, b := range []*ctxdir.Branch{c.Active(), c.Active(), own} {
		body := []byte(`{"role":"user","content":"x"}`)
		at, err := b.Append(ctx, ctxdir.Draft{Body: body})
		if err != nil {
			t.Fatal(err)
		}
		m := writer.Message{ID: at.ID, Sum: writer.SumOf(body)}
		step := writer.Step{State: writer.Begun, Op: writer.Append, Context: c.ID(), Branch: b.Name(), Messages: []writer.Message{m}}
		m.Position = at.Position
		done := step
		done.State, done.Messages = writer.Done, []writer.Message{m}
		steps = append(steps, step, done)
	}
	return dir, c.ID(), steps
}

// TestCompare: an audit notices each kind of thing that must not be, and nothing else.
func TestCompare(t *testing.T) {
	dir, shared, steps := told(t)
	last := steps[len(steps)-1]
	more := func(s writer.Step, change func(*writer.Step)) []writer.Step {
		s.Messages = slices.Clone(s.Messages)
		change(&s)
		begun := s
		begun.State = writer.Begun
		return append(slices.Clone(steps), begun, s)
	}
	// Behind a cut, a writer was told of an append and a rename.
	renamed := slices.Clone(steps[:len(steps)-1])
	for i := range renamed {
		renamed[i].Branch = strings.Replace(renamed[i].Branch, "w1-alt", "w1-old", 1)
	}
	renamed = append(renamed, writer.Step{State: writer.Begun, Op: writer.Rename, Context: shared, Branch: "w1-old", To: "w1-alt"})
	// Behind a cut, it was told of a rewind and an append.
	gone := last
	gone.Messages = []writer.Message{{ID: uuid.UUID{7}, Sum: "1"}}
	rewound := append(slices.Clone(steps[:len(steps)-2]), gone,
		writer.Step{State: writer.Begun, Op: writer.Rewind, Context: shared, Branch: "w1-alt"}, steps[len(steps)-2])
	for what, test := range map[string]struct {
		steps []writer.Step
		want  []Trouble
	}{
		"as it was told": {steps: steps},
		"a rewind and then an append were going on": {steps: rewound},
		"an append without the rewind before it":    {slices.Delete(slices.Clone(rewound), 7, 8), []Trouble{Lost, Altered}},
		"an append and then a rename were going on": {steps: renamed},
		"a message was acknowledged that is not there": {
			more(last, func(s *writer.Step) { s.Messages[0] = writer.Message{ID: shared, Position: 1} }), []Trouble{Lost},
		},
		"the same was going on": {steps: more(last, func(s *writer.Step) {
			s.State, s.Messages[0] = writer.Busy, writer.Message{ID: shared, Position: 1}
		})},
		"a message of all is not where it was acknowledged": {
			more(steps[5], func(s *writer.Step) { s.Messages[0].Position = 7 }), []Trouble{Lost},
		},
		"a message has another body": {
			more(last, func(s *writer.Step) { s.Op, s.Messages[0].Sum = writer.Replace, "1" }), []Trouble{Altered},
		},
		"a message was erased, and is there": {more(last, func(s *writer.Step) { s.Op = writer.Erase }), []Trouble{Invented}},
		"a branch was removed, and is there": {
			more(last, func(s *writer.Step) { s.Op, s.Messages = writer.Remove, nil }), []Trouble{Invented},
		},
		"a branch was renamed, and was not": {
			more(last, func(s *writer.Step) { s.Op, s.To, s.Messages = writer.Rename, "w1-neu", nil }), []Trouble{Lost, Invented},
		},
		"a branch was forked beyond its end": {
			more(last, func(s *writer.Step) { s.Op, s.To, s.At, s.Messages = writer.Fork, "w1-neu", 9, nil }), []Trouble{Lost},
		},
		"nobody made a branch":     {steps[2:], []Trouble{Lost, Invented, Altered}},
		"nobody wrote the message": {slices.Delete(slices.Clone(steps), 4, 6), []Trouble{Invented, Altered}},
		"the configuration is another one": {
			more(last, func(s *writer.Step) { s.Op, s.Value = writer.Configure, "9" }), []Trouble{Lost},
		},
		"an import is not there": {
			more(last, func(s *writer.Step) { s.Op, s.Context = writer.Import, uuid.UUID{1} }), []Trouble{Lost},
		},
		"a writer failed": {more(last, func(s *writer.Step) { s.State, s.Op, s.Error = writer.Failed, writer.Tidy, "no" }), []Trouble{Refused}},
	} {
		t.Run(what, func(t *testing.T) {
			s, err := ctxdir.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got, problems, err := read(t.Context(), s)
			if err != nil || len(problems) > 0 {
				t.Fatal(problems, err)
			}
			// What a new context has, a store with it showed before.
			before := Shown{branches: map[place][]uuid.UUID{{shared, "main"}: nil}, settings: got.settings}
			accounts := [][]writer.Step{test.steps}
			problems = compare(before, got, []uuid.UUID{shared}, accounts).problems
			var troubles []Trouble
			for _, p := range append(problems, failures(accounts, false)...) {
				if !slices.Contains(troubles, p.Trouble) {
					troubles = append(troubles, p.Trouble)
				}
			}
			if slices.Sort(troubles); !slices.Equal(troubles, slices.Sorted(slices.Values(test.want))) {
				t.Errorf("%v instead of %v: %v", troubles, test.want, problems)
			}
		})
	}
}

// TestCut: what a writer was told behind a cut is not held against the store.
func TestCut(t *testing.T) {
	cut := time.Now()
	before, behind := cut.Add(-time.Second), cut.Add(time.Second)
	path := filepath.Join(t.TempDir(), "account")
	writeAccount(t, path, []writer.Step{
		{State: writer.Begun, Time: before, Op: writer.New}, {State: writer.Done, Time: before, Op: writer.New},
		{State: writer.Begun, Time: before, Op: writer.Remove}, {State: writer.Done, Time: behind, Op: writer.Remove},
		{State: writer.Begun, Time: behind, Op: writer.Fork}, {State: writer.Failed, Time: behind, Op: writer.Fork},
	})
	for _, test := range []struct {
		cut  time.Time
		want int
	}{{time.Time{}, 6}, {cut, 4}} {
		accounts, err := Round{Accounts: []string{path}, Cut: test.cut}.accounts()
		if err != nil || len(accounts[0]) != test.want {
			t.Errorf("%v: %v, %v", test.cut, accounts, err)
		}
	}
}

// writeAccount writes what a writer puts down, and the beginning of a line that it did not finish.
func writeAccount(t *testing.T, path string, steps []writer.Step) {
	t.Helper()
	var b []byte
	for _, s := range steps {
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		b = append(append(b, line...), '\n')
	}
	if err := os.WriteFile(path, append(b, `{"state":"do`...), 0o600); err != nil {
		t.Fatal(err)
	}
}
