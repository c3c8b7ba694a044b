package context

import (
	"encoding/json"
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
	)
	end := sample[strings.Index(sample, ",\n  \"member_sums\""):] // sums and check
	check := sample[strings.Index(sample, ",\n  \"check\"") : len(sample)-len("\n}\n")]
	sums := strings.TrimSuffix(end, check+"\n}\n")
	respelled := func(text string) string { // as a program does that reads the file and writes it again
		var all map[string]any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&all); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), "é", `\u00e9`)
	}
	another := func(m *Metadata) { newer(m); m.Extra.SetText("another", "more"); m.State = json.RawMessage(one) }
	renamed := func(text string) string {
		return edit(text, `"name": "main"`, `"name": "trunk"`, `"active_branch": "main"`, `"active_branch": "trunk"`)
	}
	trunk := renamed(sample)
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
		"edited, behind":               {sample, edit(written(older), "0.000003", "1"), ProjectionEdited, title, "main", one},
		"renamed, behind":              {sample, renamed(written(older)), ProjectionEdited, title, "trunk", state},
		"altered, behind":              {written(newer), edit(sample, "03:04:06Z", "03:04:07Z"), ProjectionAltered, "newer", "main", state},
		"edited, without sums":         {sample, edit(sample, sums, "", title, "my"), ProjectionEdited, "my", "main", state},
		"behind, without sums":         {written(newer), edit(sample, sums, "", title, "my"), ProjectionUnknown, "newer", "main", state},
		"behind, other sums":           {written(newer), edit(sample, sums, `, "member_sums": 1`), ProjectionUnknown, "newer", "main", state},
		"respelled":                    {sample, respelled(sample), ProjectionAltered, title, "main", state},
		"respelled, behind":            {written(another), respelled(sample), ProjectionAltered, "newer", "main", one},
		"respelled, edited":            {written(another), respelled(edit(sample, title, "my")), ProjectionEdited, "my", "main", one},
	} {
		committed := parse(x.committed)
		m, is := Reconcile(committed, parse(x.file))
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
	if m, is := Reconcile(parse(sample), parse(lines)); is != ProjectionAltered || m.Lines[0].Folder != "branch-main" {
		t.Errorf("an edited line: %d, %+v", is, m.Lines[0])
	}
}

// TestEqualValues: a program that rewrites a file may spell a value in another way, which is no edit. Two values are
// never one.
func TestEqualValues(t *testing.T) {
	sums := map[string]string{}
	for _, same := range [][]string{
		{`"é"`, `"\u00e9"`},
		{`"a/b"`, `"a\/b"`, `"\u0061/b"`},
		{`{"a":1.0,"b":[true,null]}`, "{\n  \"b\": [ true, null ],\n  \"a\": 1 }"},
		{`0.70`, `0.7`, `7e-1`},
		{`12345678901234567890`},
		{`12345678901234567891`},
		{`"1"`}, {`null`}, {`[]`}, {`{}`}, {`""`}, {`[1,2]`}, {`[2,1]`}, {`"<&>"`, `"\u003c\u0026>"`},
	} {
		for _, text := range same {
			if sum := string(valueSum(json.RawMessage(text))); sum != string(valueSum(json.RawMessage(same[0]))) {
				t.Errorf("%s is not %s", text, same[0])
			} else if before, taken := sums[sum]; taken && before != same[0] {
				t.Errorf("%s is %s", text, before)
			} else {
				sums[sum] = same[0]
			}
		}
	}
}
