package privacy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/privacy"
)

func TestClean(t *testing.T) {
	f := privacy.NewFilter("/home/ada/work/release-notes", "feature/lantern", "harbour")
	for _, x := range []struct{ text, want string }{
		{"We decided to keep the queue in memory.", "We decided to keep the queue in memory."},
		{"Don't retry more than 3 times, 50% of them fail.", "Don't retry more than 3 times, 50% of them fail."},
		{"Call `store.Open(dir)` first.", "Call [code] first."},
		{"```go\nfunc secret() {}\n```\nThat is all.", "[code]\nThat is all."},
		{"    if key == nil {\n    return\nDone.", "[code]\nDone."},
		{"See internal/engine/store.go and ~/notes.", "See [path] and [path]."},
		{"Look at store.go:12 please", "Look at [name] please"},
		{"Open https://example.com/a?b=1 now", "Open [url] now"},
		{"Write to ada@example.com today.", "Write to [email] today."},
		{"The key is sk-abc123XYZ and the port 54321.", "The key is [name] and the port [number]."},
		{"Version 1.2.3 of 2024-11-05", "Version [number] of [number]"},
		{"parseToken and parse_token and parse2 differ", "[name] and [name] and [name] differ"},
		{"The Lantern branch of release notes is behind", "The [name] branch of [name] is behind"},
		{"ReleaseNotes, release-notes, releasenotes", "[name]"},
		{"the harbour, its Harbours and HARBOUR", "the [name], its [name] and [name]"},
		{"We met Grace in Paris on Monday", "We met [name] in [name] on [name]"},
		{"das Schloß 锁 naïve", "[name]"},
		{"- first item\n* second item\n1. third item", "first item\nsecond item\nthird item"},
		{"**Important:** read this", "Important: read this"},
		{"", ""},
	} {
		got, err := f.Clean(x.text)
		if err != nil || got != x.want {
			t.Errorf("%q is %q, %v; wanted %q", x.text, got, err, x.want)
		}
		if again, err := f.Clean(got); err != nil || again != got {
			t.Errorf("%q, cleaned again, is %q, %v", got, again, err)
		}
	}
}

// TestCheckFailsClosed: what Clean should have removed is refused.
func TestCheckFailsClosed(t *testing.T) {
	f := privacy.NewFilter("release-notes", "harbour")
	for _, text := range []string{
		"see /etc/passwd", "a/b", `c:\users`, "store.go", "parseToken", "parse_token", "x := 1", "`code`", "f(x)", "port 54321", "10:30", "a@b",
		"$HOME", "zyzzyva", "harbour", "release notes", "release-notes", "naïve", "with a\ttab", "one-two-three", "<b>", "a7", "v2",
	} {
		if err := f.Check(text); !errors.Is(err, privacy.ErrPrivate) {
			t.Errorf("%q passes: %v", text, err)
		}
	}
	for _, text := range []string{"", "It works [code] now.", "50% of 3", "well-known: yes, \"it is\" (really)!"} {
		if err := f.Check(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := f.Clean(strings.Repeat("a", privacy.MaxText+1)); !errors.Is(err, privacy.ErrPrivate) {
		t.Errorf("a huge text: %v", err)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("We met `x` at a/b.", "some name")
	f.Add("[co[code]de] [[name]] ](x)", "na me")
	f.Fuzz(func(t *testing.T, text, name string) {
		filter := privacy.NewFilter(name, "harbour")
		got, err := filter.Clean(text)
		if err != nil {
			return // it fails closed
		}
		if strings.ContainsAny(got, "/\\`@_{}<>=") || strings.Contains(strings.ToLower(got), "harbour") {
			t.Errorf("%q leaves %q", text, got)
		}
	})
}
