package index

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/message"
)

// TestWitness: which files prove that the record of a new version was durable. The file of an earlier version never
// does, not even with the size and a time that the new one's may have.
func TestWitness(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.add(1, true))
	paths, err := filepath.Glob(filepath.Join(b.root, "messages", "*", "*.json"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	path := paths[0]
	before, err := os.ReadFile(path)
	b.must(err)
	env, err := message.Parse(before)
	b.must(err)
	first := env.StoredAt
	env.StoredAt = first.Add(7 * time.Second) // the same digits after the point
	body := env.AppendTo(nil)
	after := append(append([]byte{}, body...), '\n')
	if len(after) != len(before) {
		t.Fatalf("versions of %d and %d bytes", len(before), len(after))
	}
	rec := record{head: head{kind: KindReplace, len: int64(len(body))}, body: body}
	garbage := append(make([]byte, len(before)-1), '\n')
	for _, v := range []struct {
		name    string
		content []byte
		at      time.Time
		want    bool
	}{
		{"the earlier version", before, first, false},
		{"the new version", after, env.StoredAt, true},
		{"the new version, touched", after, env.StoredAt.Add(time.Hour), true},
		{"damage", garbage, env.StoredAt, true},
		{"damage, touched", garbage, env.StoredAt.Add(time.Hour), false},
		{"none", nil, first, false},
	} {
		b.must(os.Remove(path))
		if v.content != nil {
			b.must(os.WriteFile(path, v.content, 0o600))
			b.must(os.Chtimes(path, v.at, v.at))
		}
		if got := b.log.state.acknowledged(rec); got != v.want {
			t.Errorf("%s: %t", v.name, got)
		}
	}
}
