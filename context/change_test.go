package context

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/object"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func numbered(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("0a000000-0000-4000-8000-%012d", n))
}

// drawMetadata returns valid metadata with up to eight branches and lines.
func drawMetadata(t *rapid.T, revision int64) *Metadata {
	drawObject := func(label string) (o Object) {
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "model_id", "q\"\\\n"}), 0, 3, rapid.ID).Draw(t, label) {
			o.Set(key, json.RawMessage(rapid.SampledFrom([]string{`"x"`, `{"deep":[1,null]}`, `1.0`, `""`}).Draw(t, "value")))
		}
		return o
	}
	m := &Metadata{
		ID: numbered(1), Title: rapid.SampledFrom([]string{"", "t", "<é\n>"}).Draw(t, "title"), Revision: revision,
		Config: drawObject("config"), Labels: drawObject("labels"), Extra: drawObject("unknown"), UpdatedAt: time.Unix(revision, 5).UTC(),
		State: json.RawMessage(rapid.SampledFrom([]string{`{"step":1}`, `[2]`}).Draw(t, "state")),
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "lines") {
		l := Line{ID: numbered(10 + i), Folder: rapid.SampledFrom([]string{"branch-main", "branch-b"}).Draw(t, "folder")}
		if i > 0 {
			l.Parent, l.Base = numbered(10), int64(rapid.IntRange(0, 3).Draw(t, "base"))
		}
		m.Lines = append(m.Lines, l)
		if i == 0 || rapid.Bool().Draw(t, "named") {
			name := fmt.Sprint("branch ", rapid.IntRange(0, 1).Draw(t, "name"), i)
			m.Branches = append(m.Branches, Branch{Name: name, Line: l.ID, Extra: drawObject("of the branch")})
		} else {
			at := time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "at")), 1).UTC()
			m.Removed = append(m.Removed, Removed{Branch: Branch{Line: l.ID, Name: "gone", SystemPrompt: []byte(`"p"`)}, At: at, Why: "removed"})
		}
	}
	m.ActiveBranch = m.Branches[0].Name
	return m
}

// TestChange applies the change between any two revisions, as the one reads it that has only the earlier one.
func TestChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawMetadata(t, 7), drawMetadata(t, 8)
		change, err := before.Change(after)
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParseMetadata(RawMetadata(before))
		if err != nil {
			t.Fatal(err)
		}
		was := RawMetadata(read)
		got, err := read.Apply(change)
		if err != nil {
			t.Fatalf("%v\n%s", err, change)
		}
		sorted := func(m *Metadata) []byte { // a member that is new comes last
			m = m.Clone()
			for _, o := range []*Object{&m.Extra} {
				byKey := func(a, b Member) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) }
				*o = object.New(slices.SortedFunc(slices.Values(o.Members()), byKey))
			}
			return RawMetadata(m)
		}
		if !bytes.Equal(sorted(got), sorted(after)) {
			t.Fatalf("got  %s\nwant %s\nby %s", sorted(got), sorted(after), change)
		}
		if !bytes.Equal(RawMetadata(read), was) {
			t.Fatalf("the change altered what it applies to: %s", RawMetadata(read))
		}
	})
}

// TestChangeIsSmall forks a context of a thousand branches.
func TestChangeIsSmall(t *testing.T) {
	m := &Metadata{ID: numbered(1), ActiveBranch: "b0", Revision: 1}
	add := func(i int) {
		m.Lines = append(m.Lines, Line{ID: numbered(10 + i), Folder: "branch-main"})
		m.Branches = append(m.Branches, Branch{Name: fmt.Sprint("b", i), Line: numbered(10 + i)})
	}
	for i := range 1000 {
		add(i)
	}
	before := m.Clone()
	add(1000)
	m.Revision++
	change, err := before.Change(m)
	if err != nil || len(change) > 400 {
		t.Fatalf("%v: %d bytes: %s", err, len(change), change)
	}
}

// TestChangeOfAnother refuses changes that do not apply.
func TestChangeOfAnother(t *testing.T) {
	m := &Metadata{
		ID: numbered(1), ActiveBranch: "main", Revision: 3, UpdatedAt: time.Unix(9, 0).UTC(),
		Lines: []Line{{ID: numbered(2), Folder: "branch-main"}}, Branches: []Branch{{Name: "main", Line: numbered(2)}},
	}
	const here = `"updated_at":"1970-01-01T00:00:09Z"`
	if _, err := m.Apply(json.RawMessage(`{"of":{"revision":3,` + here + `},"revision":4,"title":"t"}`)); err != nil {
		t.Fatal(err)
	}
	changes := []string{
		``, `[]`, `{}`, `{"of":3,"revision":4}`, `{"of":{"revision":2,` + here + `},"revision":4}`, `{"of":{"revision":3,` + here + `}}`,
		`{"of":{"revision":3,"updated_at":"1970-01-01T00:00:08Z"},"revision":4}`,
	}
	for _, member := range []string{
		`"id":"0a000000-0000-4000-8000-000000000009"`, `"id":null`, `"title":7`, `"active_branch":"other"`, `"lines":[]`, `"lines":[0]`,
		`"lines":[0,2]`, `"lines":[2,0]`, `"lines":[-1,1]`, `"lines":[0,-1]`, `"lines":[0,1]`, `"lines":null,"branches":[0,1]`,
		`"lines":[9223372036854775807,9223372036854775807]`,
		`"lines":[1,0,{"id":"0a000000-0000-4000-8000-000000000003","base":0,"folder":"../up"}]`,
		`"branches":[0,1,{"name":"main","line":"0a000000-0000-4000-8000-000000000007"}]`,
	} {
		changes = append(changes, `{"of":{"revision":3,`+here+`},"revision":4,`+member+`}`)
	}
	for _, change := range changes {
		if got, err := m.Apply(json.RawMessage(change)); !errors.Is(err, ErrMetadata) {
			t.Errorf("%s led to %v, %v", change, got, err)
		}
	}
	before := m.Clone()
	m.Revision++
	m.Extra.Set("of", json.RawMessage(`1`))
	if change, err := before.Change(m); change != nil || err != nil {
		t.Errorf("a member with the name of the origin: %s, %v", change, err)
	}
}

// TestSecondMember refuses a known member among the unknown ones: the later of two would count.
func TestSecondMember(t *testing.T) {
	for _, key := range []string{"ctxdir", "lines", "active_branch", "revision"} {
		m, err := ParseMetadata([]byte(sample))
		if err != nil {
			t.Fatal(err)
		}
		next := m.Clone()
		next.Revision++
		next.Extra.Set(key, json.RawMessage(`[]`))
		if _, err := CommittableMetadata(next); !errors.Is(err, ErrMetadata) {
			t.Errorf("a copy with %q: %v", key, err)
		}
		if _, err := m.Change(next); !errors.Is(err, ErrMetadata) {
			t.Errorf("a change with %q: %v", key, err)
		}
	}
}

func FuzzApply(f *testing.F) {
	m := &Metadata{
		ID: numbered(1), ActiveBranch: "main", Revision: 3, UpdatedAt: time.Unix(9, 0).UTC(),
		Lines: []Line{{ID: numbered(2), Folder: "branch-main"}}, Branches: []Branch{{Name: "main", Line: numbered(2)}},
	}
	f.Add([]byte(`{"of":{"revision":3,"updated_at":"1970-01-01T00:00:09Z"},"revision":4,"state":null,` +
		`"branches":[1,0,{"name":"b","line":"0a000000-0000-4000-8000-000000000002"}]}`))
	f.Fuzz(func(t *testing.T, change []byte) {
		was := RawMetadata(m)
		got, err := m.Apply(change)
		if !bytes.Equal(RawMetadata(m), was) {
			t.Fatal("the change altered what it applies to")
		}
		if err != nil {
			if !errors.Is(err, ErrMetadata) {
				t.Fatal(err)
			}
			return
		}
		if _, err := ParseMetadata(RawMetadata(got)); err != nil {
			t.Fatalf("what a change leads to cannot be read: %v", err)
		}
	})
}

func BenchmarkChange(b *testing.B) {
	m, err := ParseMetadata([]byte(sample))
	if err != nil {
		b.Fatal(err)
	}
	next := m.Clone()
	next.Revision, next.State = 8, json.RawMessage(`{"step":2}`)
	b.Run("change", func(b *testing.B) {
		for b.Loop() {
			_, _ = m.Change(next)
		}
	})
	change, _ := m.Change(next)
	raw := RawMetadata(next)
	b.Run("apply", func(b *testing.B) {
		for b.Loop() {
			_, _ = m.Apply(change)
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			_, _ = ParseMetadata(raw)
		}
	})
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			_, _ = CommittableMetadata(next)
		}
	})
}
