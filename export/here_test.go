package export

import (
	"strings"
	"testing"
)

func TestReplaceText(t *testing.T) {
	f := func(s string) string { return strings.Replace(s, "/home/ada", "/Users/ada", 1) }
	for _, x := range [][2]string{
		{`{"a":1.50e2,  "cwd": "/home/ada/walk" ,"b":"\u0000"}`, `{"a":1.50e2,  "cwd": "/Users/ada/walk" ,"b":"\u0000"}`},
		{`{"cwd":"/srv"}`, `{"cwd":"/srv"}`},
		{`{"cwd":7,"cwd":"/home/ada"}`, `{"cwd":7,"cwd":"/home/ada"}`},
		{`{"b":{"cwd":"/home/ada"}}`, `{"b":{"cwd":"/home/ada"}}`},
		{`{"b":["cwd"],"cwd":"/home/ada"`, `{"b":["cwd"],"cwd":"/Users/ada"`},
		{`["cwd"]`, `["cwd"]`},
		{``, ``},
	} {
		if got := replaceText([]byte(x[0]), f, "cwd"); string(got) != x[1] {
			t.Errorf("%s: %s, want %s", x[0], got, x[1])
		}
	}
	deep := `{"type":"turn_context","payload":{"a":[{"cwd":"/home/ada"}],"cwd":"/home/ada/walk"},"cwd":"/home/ada"}`
	want := strings.Replace(deep, "/home/ada/walk", "/Users/ada/walk", 1)
	if got := replaceText([]byte(deep), f, "payload", "cwd"); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}
