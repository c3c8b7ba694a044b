package context

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/object"
	"github.com/google/uuid"
)

const sample = `{
  "ctxdir": "context/1",
  "id": "0a000000-0000-4000-8000-000000000001",
  "parent_id": null,
  "title": "Ein Weg < & >",
  "config": {
    "model_id": "m",
    "parameters": {
      "temperature": 0.70,
      "seed": 12345678901234567890
    },
    "later": [
      1,
      {
        "a": null
      }
    ]
  },
  "active_branch": "main",
  "branches": [
    {
      "name": "main",
      "line": "0a000000-0000-4000-8000-000000000002",
      "system_prompt": "Be kind.",
      "colour": "red"
    }
  ],
  "lines": [
    {
      "id": "0a000000-0000-4000-8000-000000000002",
      "base": 0,
      "folder": "branch-main"
    }
  ],
  "state": {
    "failed": {
      "f": 0.000003
    }
  },
  "revision": 7,
  "created_at": "2026-01-02T03:04:05.123456789Z",
  "updated_at": "2026-01-02T03:04:06Z",
  "unknown": 1.0,
  "another": "é",
  "member_sums": {"title":"34320acbd6ededaf","config":{"model_id":"dbebdbe2c776d58a","parameters":"0dd1e6a9951f12ad",` +
	`"later":"c916f871d9570516"},"active_branch":"6ed34a8bfd6ac59c",` +
	`"branches":{"0a000000-0000-4000-8000-000000000002":{"name":"6ed34a8bfd6ac59c","system_prompt":"31e11eea5eda5559",` +
	`"colour":"6813f3fedf3cc6e2"}},"state":"a1668027559a58fc","unknown":"b7b41276360564d4","another":"35b1adadf374935d"},
  "check": "b9a627b47530955f"
}
`

func TestMetadataKeepsEverything(t *testing.T) {
	m, err := ParseMetadata([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Encode()
	if err != nil || string(got) != sample {
		t.Errorf("came back as %s, %v", got, err)
	}
	c := m.Clone()
	c.Branches[0].Name, c.Lines[0].Base = "other", 3
	c.Config.Set("model_id", json.RawMessage(`"n"`))
	c.Extra.Set("unknown", nil)
	if again, err := m.Encode(); err != nil || !bytes.Equal(again, got) {
		t.Error("a change of the clone changed the original")
	}
}

// TestTimes: a time that cannot be written in UTC, which has a year of four digits in its own zone, is damage.
func TestTimes(t *testing.T) {
	for _, member := range []string{"created_at", "updated_at"} {
		for _, at := range []string{"9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00+14:00"} {
			raw := regexp.MustCompile(`"`+member+`": "[^"]*"`).ReplaceAllString(sample, `"`+member+`": "`+at+`"`)
			if _, err := ParseMetadata([]byte(raw)); raw == sample || !errors.Is(err, ErrMetadata) {
				t.Errorf("%s %s: %v", member, at, err)
			}
		}
	}
}

func TestObject(t *testing.T) {
	var o Object
	if err := json.Unmarshal([]byte(`{"b":1.50,"a":{"x":1},"b":2}`), &o); err != nil {
		t.Fatal(err)
	}
	o.SetText("c", "<")
	o.Set("a", nil)
	if got, err := o.MarshalJSON(); err != nil || string(got) != `{"b":2,"c":"<"}` {
		t.Errorf("%s, %v", got, err)
	}
	if o.Text("c") != "<" || o.Text("b") != "" || o.Get("nope") != nil {
		t.Error("Get or Text")
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"ctxdir":"context/1","id":"0a000000-0000-4000-8000-000000000001","branches":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ParseMetadata(raw)
		if err != nil {
			if !errors.Is(err, ErrMetadata) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		first, err := m.Encode()
		if err != nil {
			return
		}
		again, err := ParseMetadata(first)
		if err != nil {
			t.Fatalf("%s cannot be read again: %v", first, err)
		}
		if second, err := again.Encode(); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s became %s, %v", first, second, err)
		}
	})
}

func TestNames(t *testing.T) {
	id := uuid.New()
	if got, ok := ParseMessageFile(MessageFile(id)); !ok || got != id {
		t.Error("message file")
	}
	for _, bad := range []string{"x.json", "0A000000-0000-4000-8000-000000000001.json", "../" + MessageFile(id), id.String(),
		"." + MessageFile(id)} {
		if _, ok := ParseMessageFile(bad); ok {
			t.Errorf("%q passes for a message file", bad)
		}
	}
	for name, want := range map[string]bool{"branch-a": true, "branch-": false, "a": false, "branch-a/b": false, "branch-..": false,
		`branch-a\b`: false, "branch-%2E%2E": true} {
		if ValidFolder(name) != want {
			t.Errorf("ValidFolder(%q) is %v", name, !want)
		}
	}
}

// BenchmarkMetadataRecord encodes metadata for the log, as each commit that changes it does.
func BenchmarkMetadataRecord(b *testing.B) {
	for _, branches := range []int{1, 50, 500} {
		m, err := ParseMetadata([]byte(sample))
		if err != nil {
			b.Fatal(err)
		}
		for i := 1; i < branches; i++ {
			l := Line{ID: uuid.New(), Parent: m.Lines[0].ID, Base: 100, Folder: fmt.Sprintf("branch-%d", i)}
			m.Lines, m.Branches = append(m.Lines, l), append(m.Branches, Branch{Name: fmt.Sprint(i), Line: l.ID})
			m.Removed = append(m.Removed, Removed{Branch: Branch{Line: l.ID, Name: "main"}, At: time.Now(), Why: "rewound"})
		}
		b.Run(fmt.Sprint(branches), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := CommittableMetadata(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestDecodeLines: the lines of the metadata are decoded as json.Unmarshal decodes them.
func TestDecodeLines(t *testing.T) {
	for _, v := range []string{
		`null`, `[]`, `[{}]`, `{}`, `[1]`, `[null]`, `"x"`,
		`[{"id":"01890a5d-ac96-774b-bcce-b302099a8057","base":3,"folder":"a b","x":{}}]`, `[{"base":"3"}]`, `[{"base":1.5}]`, `[{"id":"1"}]`,
	} {
		var want []Line
		var got lines
		werr, err := json.Unmarshal([]byte(v), &want), object.Decode(json.RawMessage(v), &got)
		if (werr == nil) != (err == nil) || err == nil && !reflect.DeepEqual(want, []Line(got)) {
			t.Errorf("%s: %v, %v; wanted %v, %v", v, got, err, want, werr)
		}
	}
}
