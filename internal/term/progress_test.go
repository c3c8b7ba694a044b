package term

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// screen stands for a terminal.
type screen struct {
	strings.Builder
	columns, rows int
}

func (s *screen) Size() (columns, rows int, err error) { return s.columns, s.rows, nil }

func noEnv(string) string { return "" }

// TestProgress: a bar appears after a delay, shows rate and remaining time, and leaves nothing on the screen.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{columns: 120}
		p := NewProgress(s, noEnv, "Checking")
		p.Steps("messages", 1, 1000)
		if s.Len() > 0 {
			t.Errorf("at once: %q", s.String())
		}
		time.Sleep(2 * time.Second)
		p.Steps("messages", 200, 1000)
		time.Sleep(2 * time.Second)
		p.Steps("messages", 400, 1000)
		bars := strings.Split(s.String(), "\r")
		want := "Checking messages  40% |" + strings.Repeat("█", 16) + strings.Repeat(" ", 24) + "| (400/1000, 100 messages/s) [4s:6s]\x1b[0K"
		if bar := bars[len(bars)-1]; bar != want {
			t.Errorf("bar: %q", bar)
		}
		p.columns = 70
		p.Steps("commits", 1, 1000)
		time.Sleep(time.Second)
		p.Steps("commits", 500, 1000)
		if !strings.Contains(s.String(), "Checking commits  50% |██  | (500/1000, ") {
			t.Errorf("narrow: %q", s.String())
		}
		p.Clear()
		if !strings.HasSuffix(s.String(), "\x1b[2K\r") {
			t.Errorf("not cleared: %q", s.String())
		}
		s.Reset()
		p.File("some\nfile.jsonl")
		p.Bytes(1<<20, 4<<20)
		time.Sleep(time.Second)
		p.Bytes(2<<20, 4<<20)
		if !strings.Contains(s.String(), "Checking some file.jsonl  50% |") || !strings.HasSuffix(s.String(), "(2.0 MiB/s) [1s:1s]\x1b[0K") {
			t.Errorf("bytes: %q", s.String())
		}
	})
}

// TestContextsProgress: a bar counts contexts only if there are several.
func TestContextsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{columns: 120}
		p := NewProgress(s, noEnv, "Backing up")
		time.Sleep(2 * time.Second)
		p.Items("contexts", 1, 1)
		if s.Len() > 0 {
			t.Errorf("one: %q", s.String())
		}
		p.Items("contexts", 1, 4)
		time.Sleep(time.Second)
		p.Items("contexts", 2, 4)
		if bar := s.String(); !strings.Contains(bar, "Backing up contexts  50% |") || !strings.Contains(bar, "(2/4, ") {
			t.Errorf("several: %q", bar)
		}
	})
}
