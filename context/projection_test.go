package context

import (
	"strings"
	"testing"
)

// TestReconcile compares metadata.json with the committed metadata: the engine's own files never change anything, and
// of a person's changes the members count that a person owns.
func TestReconcile(t *testing.T) {
	parse := func(text string) *Metadata {
		t.Helper()
		m, err := ParseMetadata([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	written := func(change func(m *Metadata)) string { // by the engine
		m := parse(sample).Clone()
		change(m)
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	same := func(*Metadata) {}
	newer := func(m *Metadata) { m.Revision, m.Title, m.Lines[0].Folder = 8, "newer", "branch-newer" }
	older := func(m *Metadata) { m.Revision, m.Title = 6, "older" }
	edit := func(text string, pairs ...string) string {
		edited := strings.NewReplacer(pairs...).Replace(text)
		if edited == text {
			t.Fatalf("%v changes nothing", pairs)
		}
		return edited
	}
	const (
		title = "Ein Weg < & >"
		state = `{"failed":{"f":0.000003}}`
		one   = `{"failed":{"f":1}}`
		check = ",\n  \"check\": \"f9e411ba0691355e\""
	)
	renamed := func(text string) string {
		return edit(text, `"name": "main"`, `"name": "trunk"`, `"active_branch": "main"`, `"active_branch": "trunk"`)
	}
	trunk := renamed(sample)
	format1 := func(text string) string { return edit(text, "context/2", "context/1") }
	for name, x := range map[string]struct {
		committed, file string
		is              Projection
		title, branch   string
		state           string
	}{
		"current":                      {sample, sample, ProjectionCurrent, title, "main", state},
		"behind":                       {written(newer), sample, ProjectionStale, "newer", "main", state},
		"ahead":                        {sample, written(newer), ProjectionNewer, "newer", "main", state},
		"ahead, and edited":            {sample, edit(written(newer), "newer", "mine"), ProjectionNewer, "mine", "main", state},
		"other line ends":              {sample, strings.ReplaceAll(sample, "\n", "\r\n"), ProjectionAltered, title, "main", state},
		"edited":                       {sample, edit(sample, title, "my", "0.000003", "1"), ProjectionEdited, "my", "main", one},
		"without check":                {sample, edit(sample, check, "", "Be kind.", "Be."), ProjectionEdited, title, "main", state},
		"edited, another change since": {written(newer), edit(sample, "0.000003", "1"), ProjectionEdited, "newer", "main", one},
		"edited, the same since":       {written(newer), edit(sample, title, "mine"), ProjectionEdited, "mine", "main", state},
		"a branch renamed":             {sample, trunk, ProjectionEdited, title, "trunk", state},
		"edited, base unknown":         {sample, edit(written(older), "0.000003", "1"), ProjectionEdited, "older", "main", one},
		"renamed, base unknown":        {sample, renamed(written(older)), ProjectionEdited, "older", "main", state},
		"from before an upgrade":       {sample, format1(edit(sample, "Ein", "Kein")), ProjectionStale, title, "main", state},
		"before":                       {format1(sample), format1(edit(sample, "Ein", "Kein")), ProjectionNewer, "Kein Weg < & >", "main", state},
	} {
		committed, base := parse(x.committed), parse(written(same))
		m, is := Reconcile(committed, parse(x.file), func(revision int64) *Metadata {
			if revision == base.Revision {
				return base
			}
			return nil
		})
		if is != x.is || m.Title != x.title || m.ActiveBranch != x.branch || m.Branches[0].Name != x.branch || string(m.State) != x.state {
			t.Errorf("%s: %d, title %q, branch %q of %q, state %s", name, is, m.Title, m.Branches[0].Name, m.ActiveBranch, m.State)
		}
		own := name == "current" || name == "behind"
		if fast, ok := committed.recognise([]byte(x.file)); ok != own || ok && fast != is {
			t.Errorf("%s: recognised as %d, %v", name, fast, ok)
		}
		if is != ProjectionNewer && (m.Lines[0] != committed.Lines[0] || m.Revision != committed.Revision) {
			t.Errorf("%s: line %+v, revision %d", name, m.Lines[0], m.Revision)
		}
	}
	lines := edit(sample, `"base": 0`, `"base": 0, "more": 1`, "branch-main", "branch-mine")
	if m, is := Reconcile(parse(sample), parse(lines), nil); is != ProjectionAltered || m.Lines[0].Folder != "branch-main" {
		t.Errorf("an edited line: %d, %+v", is, m.Lines[0])
	}
}
