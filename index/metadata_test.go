package index

import (
	stdcontext "context"
	"strings"
	"testing"
)

// TestUnusableMetadata commits metadata that nobody can use, as a faulty writer might. The metadata before it counts.
func TestUnusableMetadata(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before, err := b.log.Committed()
	b.must(err)
	b.must(b.dir.Lock.Acquire(stdcontext.Background()))
	b.must(b.log.Prepare())
	for _, body := range []string{`{"ctxdir":"context/2"}`, strings.Repeat("[", 10)} {
		b.must(b.log.Append([]Item{{Kind: KindMetadata, Body: []byte(body)}}).Err)
	}
	b.must(b.dir.Lock.Release())
	for range 2 {
		m, err := b.log.Committed()
		b.must(err)
		if m == nil || before == nil || m.Revision != before.Revision || m.ActiveBranch != "main" {
			t.Errorf("%+v counts, not %+v", m, before)
		}
		b.reopen()
	}
}
