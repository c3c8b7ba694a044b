package reference

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/ctxdirtest"
)

// TestKeep: lines that a message copies become references where a file still has them, once, on all branches, and the body
// stays.
func TestKeep(t *testing.T) {
	w := newWorkspace(t, false)
	s := ctxdirtest.New(t)
	ctx := t.Context()
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	copied := func(file, text string, start int) ctxdir.Draft {
		b, _ := json.Marshal(text)
		return ctxdir.Draft{Role: "user", OriginID: file, Body: fmt.Appendf(nil,
			`{"toolUseResult":{"file":{"filePath":"/elsewhere/walk/%s","content":%s,"startLine":%d,"numLines":2}},"n":1.50e2}`, file, b, start)}
	}
	given := Encode([]Ref{{File: "go.mod"}})
	other := copied("pkg/store.go", "store line 7\nstore line 8\n", 7)
	other.References = given
	drafts := []ctxdir.Draft{
		copied("pkg/store.go", "store line 3\nstore line 4\n", 3),
		copied("pkg/store.go", "another line 3\nstore line 4\n", 3),
		copied("pkg/gone.go", "store line 3\nstore line 4\n", 3),
		{Role: "user", Body: json.RawMessage(`{"role":"user","content":"no code"}`)},
		other,
	}
	if _, err := c.Active().AppendBatch(ctx, drafts); err != nil {
		t.Fatal(err)
	}
	alt, err := c.Active().Fork(ctx, "alt", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alt.Append(ctx, copied("pkg/store.go", "store line 20\nstore line 21\n", 12)); err != nil { // lines that moved
		t.Fatal(err)
	}
	const folder = "/elsewhere/walk"
	want := Kept{References: 2, Messages: 2, Bytes: 26 + 28, Without: 2}
	for _, want := range []Kept{want, {Without: 2}} {
		got, err := Keep(ctx, c, w.dir, folder)
		if err != nil || got != want {
			t.Errorf("%+v, %v, wanted %+v", got, err, want)
		}
		at := 0
		for m, err := range c.Active().Messages(ctx, 0, 10) {
			if err != nil {
				t.Fatal(err)
			}
			body, err := m.Body(ctx)
			if err != nil || string(body) != string(drafts[at].Body) || m.OriginID != drafts[at].OriginID {
				t.Errorf("message %d: %s, %s, %v", at, m.OriginID, body, err)
			}
			refs, _ := Stored(m)
			switch at {
			case 0:
				if len(refs) != 1 || refs[0].File != "pkg/store.go" || refs[0].Lines != (Lines{3, 4}) || refs[0].Sum == "" {
					t.Errorf("%+v", refs)
				}
			case 4:
				if string(m.References) != string(given) {
					t.Errorf("other references: %s", m.References)
				}
			default:
				if len(refs) > 0 {
					t.Errorf("message %d: %+v", at, refs)
				}
			}
			at++
		}
		for m, err := range alt.Messages(ctx, 2, 3) {
			if refs, _ := Stored(m); err != nil || len(refs) != 1 || refs[0].Lines != (Lines{20, 21}) {
				t.Errorf("on the fork: %+v, %v", refs, err)
			}
		}
	}
}
