package adk_test

import (
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adk"
	"google.golang.org/adk/session"
	"google.golang.org/adk/session/sessiontestsuite"
)

func newStore(t *testing.T, dir string) *ctxdir.Store {
	t.Helper()
	s, err := ctxdir.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestSuite is ADK's own suite.
func TestSuite(t *testing.T) {
	sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true},
		func(t *testing.T) session.Service { return adk.NewSessionService(newStore(t, t.TempDir())) })
}
