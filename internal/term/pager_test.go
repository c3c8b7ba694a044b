package term

import (
	"strings"
	"testing"
)

func TestPagerCommand(t *testing.T) {
	for pager, want := range map[string]string{
		"": "less -FRX", " ": "less -FRX", "cat": "", "more": "more", "less -R": "less -R", "col -b | less": "sh -c col -b | less",
	} {
		if got := strings.Join(pagerCommand(pager), " "); got != want {
			t.Errorf("%q: %q, wanted %q", pager, got, want)
		}
	}
}
