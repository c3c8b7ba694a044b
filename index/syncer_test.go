package index

import (
	"errors"
	"testing"
	"testing/synctest"
)

// TestSyncer checks that committers share a sync that began after they asked, that they go on when it ends although the
// next one runs, and that no sync follows a failed one.
func TestSyncer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun := &syncer{}, make(chan chan error)
		datasync := func() error {
			result := make(chan error)
			begun <- result
			return <-result
		}
		ask := func(end int64) chan error {
			got := make(chan error, 1)
			go func() { got <- s.wait(datasync, end) }()
			return got
		}
		first := ask(1)
		one := <-begun
		second := ask(2)
		synctest.Wait() // it waits
		third := ask(3)
		synctest.Wait() // it waits
		one <- nil
		two := <-begun
		if err := <-first; err != nil || s.covers(2) {
			t.Fatalf("the first sync: %v; it covers a later record: %v", err, s.covers(2))
		}
		fourth := ask(4)
		synctest.Wait() // it waits
		two <- nil
		for _, got := range []chan error{second, third} {
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		}
		if !s.covers(3) || s.covers(4) {
			t.Fatalf("record 3 is covered: %v, record 4: %v", s.covers(3), s.covers(4))
		}
		failure := errors.New("no disk")
		three := <-begun
		three <- failure
		if err := <-fourth; !errors.Is(err, failure) {
			t.Fatalf("the failed sync: %v", err)
		}
		if err := s.wait(datasync, 5); !errors.Is(err, failure) {
			t.Fatalf("after a failed sync: %v", err)
		}
	})
}
