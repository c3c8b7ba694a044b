package assemble_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/workspace"
)

// TestInstructions: the instructions of a workspace come first, in every format and within the budget, and an unusable
// file is an error.
func TestInstructions(t *testing.T) {
	k := newKit(t)
	k.add(k.c, "How do we name branches?", "After the issue.")
	path := filepath.Join(k.s.Info().Path, workspace.Instructions)
	check(t, os.WriteFile(path, []byte("\nAnswer in rhymes.\n"), 0o600))
	for _, f := range []assemble.Format{assemble.Text, assemble.OpenAI, assemble.Anthropic, assemble.JSON} {
		a, err := assemble.Build(t.Context(), k.s, assemble.Request{Context: k.c.ID(), Index: k.x, MaxTokens: 2000, Format: f})
		check(t, err)
		if len(a.Items) < 2 || a.Items[0].Kind != assemble.Instructions || a.Items[0].Position != -1 || a.Tokens > 2000 ||
			strings.Count(a.Text, "Answer in rhymes.") != 1 {
			t.Errorf("%s: %+v in %s", f, a.Items, a.Text)
		}
	}
	check(t, os.WriteFile(path, []byte(strings.Repeat("Answer in rhymes. ", 1000)), 0o600))
	a, err := assemble.Build(t.Context(), k.s, assemble.Request{Context: k.c.ID(), Index: k.x, MaxTokens: 200})
	check(t, err)
	if a.Tokens > 200 || !strings.HasPrefix(a.Items[0].Text, "Answer in rhymes.") || !strings.Contains(a.Text, "After the issue.") {
		t.Errorf("%d tokens: %s", a.Tokens, a.Text)
	}
	check(t, os.WriteFile(path, []byte{0xff}, 0o600))
	if _, err := assemble.Build(t.Context(), k.s, assemble.Request{Context: k.c.ID(), Index: k.x}); err == nil {
		t.Error("instructions that are not in UTF-8")
	}
}
