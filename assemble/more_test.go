package assemble_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/reference"
)

// TestMoments checks that moments come before the messages, the ones for the query first.
func TestMoments(t *testing.T) {
	k := newKit(t)
	k.add(k.c, chatter(0, 300)...)
	_, err := moment.Add(t.Context(), k.c,
		moment.Moment{Type: moment.Pattern, Content: "Every table has a column for the tenant.", Relevance: 0.9},
		moment.Moment{Type: moment.Decision, Content: "We chose the heron queue over the egret queue.", Relevance: 0.4})
	check(t, err)
	a := k.build(assemble.Request{Query: "why the heron queue", MaxTokens: 1000})
	k.follow(a)
	var all []string
	for _, it := range a.Items {
		if it.Kind == assemble.Moment {
			all = append(all, it.Strategy)
		}
	}
	if !slices.Equal(all, []string{assemble.ExtractDecisions, assemble.ExtractPatterns}) {
		t.Errorf("moments by %v", all)
	}
	if n := strings.Count(a.Text, "egret queue"); n != 1 {
		t.Errorf("the moment is there %d times", n)
	}
}

// TestReferences checks that the text has the lines as they are now.
func TestReferences(t *testing.T) {
	k := newKit(t)
	root := t.TempDir()
	file := filepath.Join(root, "a.go")
	check(t, os.WriteFile(file, []byte("package a\n\nfunc heron() {}\n"), 0o600))
	ref, err := reference.New(t.Context(), root, "a.go", 3, 3)
	check(t, err)
	d := ctxdir.Draft{Body: said("user", "look at the heron"), References: reference.Encode([]reference.Ref{ref})}
	_, err = k.c.Active().Append(t.Context(), d)
	check(t, err)
	k.add(k.c, chatter(0, 100)...)
	check(t, os.WriteFile(file, []byte("package a\n\n// New.\n\nfunc heron() {}\n"), 0o600))
	a := k.build(assemble.Request{Query: "heron", MaxTokens: 1500, Root: root})
	k.follow(a)
	if !strings.Contains(a.Text, "a.go:5 (shifted)\nfunc heron() {}\n") {
		t.Errorf("the text has no lines: %s", a.Text)
	}
	if a = k.build(assemble.Request{Query: "heron", MaxTokens: 1500}); strings.Contains(a.Text, "func heron") {
		t.Error("without a root, no file is read")
	}
}
