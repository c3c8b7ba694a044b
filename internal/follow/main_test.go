package follow_test

import (
	"testing"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestMain lets the test program be a writer: see TestProcessesWatched.
func TestMain(m *testing.M) { kit.Main(m) }
