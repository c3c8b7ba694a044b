package api_test

import (
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/api"
)

func TestStateOf(t *testing.T) {
	for _, c := range []struct {
		age            time.Duration
		open, answered bool
		want           string
	}{
		{0, false, false, "works"},
		{59 * time.Second, false, true, "works"},
		{time.Minute, false, true, "waits"},
		{29 * time.Minute, false, true, "waits"},
		{30 * time.Minute, false, true, ""},
		{time.Minute, false, false, ""}, // a prompt without an answer: the agent is gone
		{9 * time.Minute, true, false, "works"},
		{10 * time.Minute, true, false, "silent"},
		{59 * time.Minute, true, true, "silent"},
		{time.Hour, true, false, ""},
	} {
		if got := api.StateOf(c.age, c.open, c.answered); got != c.want {
			t.Errorf("%v old, open %v, answered %v: %q, want %q", c.age, c.open, c.answered, got, c.want)
		}
	}
}
