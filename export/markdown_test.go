package export

import "testing"

func TestFence(t *testing.T) {
	for text, want := range map[string]string{
		"a":             "```\na\n```",
		"```go\nx\n```": "````\n```go\nx\n```\n````",
		"`````":         "``````\n`````\n``````",
	} {
		if got := fenced("", text); got != want {
			t.Errorf("%q: %q, wanted %q", text, got, want)
		}
	}
}
