package assemble_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
)

// TestLedger checks that the ledger has the files of calls and of shell commands, none that the newest messages show,
// and that it is a part of the beginning that stays the same from call to call.
func TestLedger(t *testing.T) {
	k := newKit(t)
	call := func(name, arguments string) {
		t.Helper()
		body := `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":%q,"arguments":%q}}]}`
		_, err := k.c.Active().Append(t.Context(), ctxdir.Draft{Body: json.RawMessage(fmt.Sprintf(body, name, arguments))})
		check(t, err)
	}
	call("Read", `{"file_path":"src/heron.go"}`)
	call("exec", `{"cmd":"sed -n '1,9p' src/grebe.go"}`)
	call("Read", `{"file_path":"src/egret.go"}`)
	k.add(k.c, chatter(0, 62)...)
	call("exec", `{"cmd":"cat src/robin.go"}`)
	call("Read", `{"file_path":"src/egret.go"}`)
	for _, format := range assemble.Formats {
		var last string
		for range 2 {
			a := k.build(assemble.Request{Query: "lorem", MaxTokens: 3000, Format: format})
			var files []string
			newest := false
			for _, it := range a.Items {
				if newest = newest || it.Kind == assemble.Newest; it.Kind == assemble.File {
					files = append(files, it.Text)
					if newest {
						t.Errorf("%s: %s comes after the newest messages", format, it.Text)
					}
				}
			}
			if !slices.Equal(files, []string{"src/egret.go", "src/grebe.go", "src/heron.go"}) || !strings.Contains(a.Text, "src/robin.go") {
				t.Errorf("%s: ledger %q", format, files)
			}
			if end := strings.Index(a.Text, "src/heron.go"); !strings.HasPrefix(a.Text, last[:min(len(last), end)]) {
				t.Errorf("%s: the text begins otherwise than before", format)
			}
			last = a.Text
			call("exec", `{"cmd":"cat src/robin.go"}`)
		}
	}
}
