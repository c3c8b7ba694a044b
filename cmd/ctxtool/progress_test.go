package main

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// screen stands for a terminal.
type screen struct {
	strings.Builder
	columns, rows int
}

func (s *screen) Size() (columns, rows int, err error) { return s.columns, s.rows, nil }

// TestSurveyProgress: the check of a store shows one bar, which counts contexts, and that of a context counts its messages.
func TestSurveyProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{columns: 120}
		a, _ := newRoot(strings.NewReader(""), &strings.Builder{}, s, func(string) string { return "" })
		v := a.newSurvey("Checking", nil, make([]uuid.UUID, 4))
		for done := range 4 {
			for messages := range int64(3) {
				v.progress(ctxdir.CheckProgress{Context: uuid.New(), Contexts: done, Done: messages, Of: 3})
				time.Sleep(time.Second)
			}
		}
		v.progress(ctxdir.CheckProgress{Contexts: 4})
		if bar := s.String(); !strings.Contains(bar, "Checking contexts  75% |") || !strings.Contains(bar, "(3/4, ") ||
			strings.Contains(bar, "(1/3, ") || strings.Contains(bar, "…") {
			t.Errorf("several: %q", bar)
		}
		s.Reset()
		v = a.newSurvey("Checking", nil, make([]uuid.UUID, 1))
		v.progress(ctxdir.CheckProgress{Done: 1, Of: 3})
		if s.Len() > 0 {
			t.Errorf("a short run: %q", s.String())
		}
		time.Sleep(2 * time.Second)
		v.progress(ctxdir.CheckProgress{Done: 2, Of: 3})
		if bar := s.String(); !strings.Contains(bar, "Checking messages  66% |") {
			t.Errorf("one: %q", bar)
		}
	})
}

// TestNoProgress: without a terminal, or with --no-progress, there is no bar.
func TestNoProgress(t *testing.T) {
	dumb := func(key string) string { return map[string]string{"TERM": "dumb"}[key] }
	plain := func(string) string { return "" }
	tests := []struct {
		name   string
		stderr io.Writer
		env    func(string) string
		args   []string
	}{
		{"file", &strings.Builder{}, plain, nil},
		{"dumb", &screen{}, dumb, nil},
		{"quiet", &screen{}, plain, []string{"-q"}},
		{"not wanted", &screen{}, plain, []string{"--no-progress"}},
	}
	for _, test := range tests {
		a, root := newRoot(strings.NewReader(""), &strings.Builder{}, test.stderr, test.env)
		if err := root.ParseFlags(test.args); err != nil {
			t.Fatal(err)
		}
		if a.newProgress("Checking") != nil {
			t.Errorf("%s: there is a bar", test.name)
		}
	}
	if a, _ := newRoot(strings.NewReader(""), &strings.Builder{}, &screen{}, plain); a.newProgress("Checking") == nil {
		t.Error("at a terminal there is none")
	}
}
