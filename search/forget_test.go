package search_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// holds returns the file in derived that contains a text, empty if there is none. It fails for a file that others may
// read.
func holds(t *testing.T, s *ctxdir.Store, text string) (in string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.Info().Path, "derived"), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		check(t, err)
		if info, err := e.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if e.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		check(t, err)
		if bytes.Contains(b, []byte(text)) {
			in = path
		}
		return nil
	})
	check(t, err)
	return in
}

// secret is a word of its own. The index stores a term without the beginning that it shares with the one before it: tail
// is in the file.
func secret(i int) (word, tail string) {
	sum := sha256.Sum256([]byte{byte(i)})
	word = "s" + hex.EncodeToString(sum[:10])
	return word, word[6:]
}

// secrets makes a context with messages that have words of their own, and indexes it.
func secrets(t *testing.T, s *ctxdir.Store, x *search.Index, n int) *ctxdir.Context {
	t.Helper()
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	for i := range n {
		word, _ := secret(i)
		_, err := c.Active().Append(t.Context(), said(t, "common words "+word+" and others"))
		check(t, err)
	}
	found(t, x, search.Query{Text: "common"})
	return c
}

// TestForget removes messages in every way, and looks for their words in the files of the index.
func TestForget(t *testing.T) {
	ways := map[string]func(s *ctxdir.Store, c *ctxdir.Context) error{
		"erase": func(s *ctxdir.Store, c *ctxdir.Context) error {
			m, err := c.Active().Range(t.Context(), 5, 6)
			check(t, err)
			_, err = s.Erase(t.Context(), c.ID(), []uuid.UUID{m[0].ID}, ctxdir.EraseOptions{})
			return err
		},
		"remove": func(s *ctxdir.Store, c *ctxdir.Context) error {
			_, err := s.Remove(t.Context(), c.ID())
			return err
		},
		"rewind and collect": func(s *ctxdir.Store, c *ctxdir.Context) error {
			check(t, c.Active().Rewind(t.Context(), 5))
			_, err := s.Collect(t.Context(), ctxdir.CollectOptions{All: true, NoGrace: true})
			return err
		},
		"rewind and purge": func(s *ctxdir.Store, c *ctxdir.Context) error {
			check(t, c.Active().Rewind(t.Context(), 5))
			_, err := s.Purge(t.Context(), ctxdir.PurgeOptions{All: true})
			return err
		},
		"replace and purge": func(s *ctxdir.Store, c *ctxdir.Context) error {
			m, err := c.Active().Range(t.Context(), 5, 6)
			check(t, err, c.Active().Replace(t.Context(), m[0].ID, said(t, "nothing")))
			_, err = s.Purge(t.Context(), ctxdir.PurgeOptions{All: true})
			return err
		},
	}
	for name, remove := range ways {
		for _, hook := range []string{"attached", "open", "not attached", "replaced before it was indexed"} {
			dir := t.TempDir()
			s := openStore(t, dir)
			x := openIndex(t, s)
			c := secrets(t, s, x, 10)
			word, tail := secret(5)
			if holds(t, s, tail) == "" {
				t.Fatal("the index has no such word")
			}
			user := s
			switch hook {
			case "attached":
				check(t, x.Close())
			case "not attached":
				user = openStore(t, dir)
			case "replaced before it was indexed":
				m, err := c.Active().Range(t.Context(), 5, 6)
				check(t, err, c.Active().Replace(t.Context(), m[0].ID, said(t, word+" again")))
			}
			check(t, remove(user, c))
			if in := holds(t, s, tail); in != "" {
				t.Errorf("%s, %s: the word is in %s", name, hook, in)
			}
			if _, err := os.Stat(filepath.Join(dir, "derived")); (err == nil) != (hook != "not attached") {
				t.Errorf("%s, %s: the folder: %v", name, hook, err)
			}
			x = openIndex(t, s)
			want := map[string]int{"erase": 9, "remove": 0, "replace and purge": 9}
			if n, ok := want[name]; ok && hook != "replaced before it was indexed" && found(t, x, search.Query{Text: "common"}) != n {
				t.Errorf("%s, %s: not %d hits", name, hook, n)
			}
			_ = c.Close()
			check(t, x.Close())
		}
	}
}

// TestEraseBesideUpdates erases while other goroutines fill and search the index, as other processes do.
func TestEraseBesideUpdates(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	c := secrets(t, s, openIndex(t, s), 30)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 3 {
		other := openStore(t, dir)
		group.Go(func() {
			for ctx.Err() == nil {
				x, err := search.Open(ctx, other)
				if err != nil {
					continue // its folder is being replaced
				}
				_, _ = x.Update(ctx, search.UpdateOptions{Whole: true})
				for range x.Search(ctx, search.Query{Text: "common"}) {
				}
				_ = x.Close()
			}
		})
	}
	for i := range 20 {
		m, err := c.Active().Range(t.Context(), int64(i), int64(i)+1)
		check(t, err)
		_, err = s.Erase(t.Context(), c.ID(), []uuid.UUID{m[0].ID}, ctxdir.EraseOptions{})
		check(t, err)
		_, tail := secret(i)
		if in := holds(t, s, tail); in != "" {
			t.Fatalf("message %d is in %s after its erase", i, in)
		}
	}
	stop()
	group.Wait()
	check(t, c.Close())
}

// TestKilled kills processes that fill the index, and compares it with a scan.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("SEARCH_TEST_STORE"); dir != "" {
		s, err := ctxdir.Open(dir)
		check(t, err)
		for {
			x, err := search.Open(t.Context(), s)
			check(t, err)
			fmt.Println("ready")
			_, err = x.Update(t.Context(), search.UpdateOptions{})
			check(t, err, x.Rebuild(t.Context()), x.Close())
		}
	}
	s := openStore(t, t.TempDir())
	r := newRand(9)
	for range 3 {
		c, err := s.Create(t.Context(), ctxdir.Metadata{})
		check(t, err)
		appendSpeech(t, r, c.Active(), 60)
		check(t, c.Close())
	}
	kills := 100
	if testing.Short() {
		kills = 10
	}
	for i := range kills {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilled$")
		cmd.Env = append(os.Environ(), "SEARCH_TEST_STORE="+s.Info().Path)
		out, err := cmd.StdoutPipe()
		check(t, err, cmd.Start())
		_, err = out.Read(make([]byte, 1)) // the first index is open
		check(t, err)
		timer := time.AfterFunc(time.Duration(r.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		if i%10 == 9 {
			x := openIndex(t, s)
			agree(t, "after a kill", s, x, r, 5)
			check(t, x.Close())
		}
	}
}

// TestBesideWriters searches while other goroutines write, and compares the index with a scan when they are done.
func TestBesideWriters(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err, c.Close())
	var group sync.WaitGroup
	for i := range 4 {
		own := openStore(t, dir)
		group.Go(func() {
			r := newRand(uint64(i))
			for n := range 40 {
				err := own.Use(t.Context(), c.ID(), func(c *ctxdir.Context) error {
					_, err := c.Active().Append(t.Context(), speech(r, n*4+i))
					if n == 20 && err == nil {
						_, err = c.Active().Fork(t.Context(), fmt.Sprint("fork", i), 10)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	x := openIndex(t, s)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		found(t, x, search.Query{Text: "lock"})
	}
	agree(t, "when the writers are done", s, x, newRand(5), queries())
}
