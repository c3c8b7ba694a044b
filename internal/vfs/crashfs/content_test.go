package crashfs

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// model is what is known of a file without knowing how crashfs keeps it. Every write has a byte of its own.
type model struct {
	now, durable []byte
	least, most  int            // what the size may be after a crash
	intact       int            // durable bytes below it were not cut away
	since        map[int][]byte // bytes written to a place since the last sync
}

func (m *model) write(off, n int, tag byte) {
	if need := off + n; need > len(m.now) {
		m.now = append(m.now, make([]byte, need-len(m.now))...)
	}
	for i := off; i < off+n; i++ {
		m.now[i] = tag
		m.since[i] = append(m.since[i], tag)
	}
	m.most = max(m.most, len(m.now))
}

func (m *model) truncate(n int) {
	if n > len(m.now) {
		m.now = append(m.now, make([]byte, n-len(m.now))...)
	}
	m.now = m.now[:n:n]
	m.least, m.intact, m.most = min(m.least, n), min(m.intact, n), max(m.most, n)
}

func (m *model) sync() {
	n := len(m.now)
	m.durable, m.least, m.most, m.intact, m.since = bytes.Clone(m.now), n, n, n, map[int][]byte{}
}

// fault says what is wrong with a content after a crash.
func (m *model) fault(got []byte) (string, int) {
	if len(got) < m.least || len(got) > m.most {
		return "size", len(got)
	}
	for i, b := range got {
		switch {
		case i < m.intact && b == m.durable[i]:
		case i >= m.intact && (b == 0 || i < len(m.durable) && b == m.durable[i]):
		case bytes.IndexByte(m.since[i], b) >= 0:
		default:
			return "byte", i
		}
	}
	return "", 0
}

func TestContentAfterCrash(t *testing.T) {
	place := rapid.OneOf(rapid.IntRange(0, 600), rapid.SampledFrom([]int{511, 512, 513, 4000, 4095, 4096, 4097, 9000}))
	size := rapid.OneOf(rapid.IntRange(1, 30), rapid.SampledFrom([]int{512, 1024, 5000}))
	rapid.Check(t, func(t *rapid.T) {
		f := New()
		put(t, f, "f", "x")
		h, err := f.OpenFile("f", flags("rw"))
		must(t, err)
		must(t, f.SyncAll())
		m := &model{now: []byte("x")}
		m.sync()
		for tag := byte(1); tag < byte(rapid.IntRange(2, 15).Draw(t, "steps")); tag++ {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				must(t, h.Datasync())
				m.sync()
			case 1, 2:
				n := place.Draw(t, "size")
				must(t, h.Truncate(int64(n)))
				m.truncate(n)
			default:
				off, n := place.Draw(t, "offset"), size.Draw(t, "length")
				_, err := h.WriteAt(bytes.Repeat([]byte{tag}, n), int64(off))
				must(t, err)
				m.write(off, n, tag)
			}
		}
		if got := read(t, f); !bytes.Equal(got, m.now) {
			t.Fatal("wrong before the crash")
		}
		if got := read(t, f.Crash(Lose)); !bytes.Equal(got, m.durable) {
			t.Fatal("Lose is not what was synced")
		}
		if got := read(t, f.Crash(Keep)); !bytes.Equal(got, m.now) {
			t.Fatal("Keep is not what there was")
		}
		if got := read(t, f.Crash(ZeroFill)); len(got) != len(m.now) {
			t.Fatal("ZeroFill changes the size")
		}
		for seed := range uint64(40) {
			if what, where := m.fault(read(t, f.Crash(Random(seed)))); what != "" {
				t.Fatalf("seed %d: wrong %s: %d", seed, what, where)
			}
		}
		if what, where := m.fault(read(t, f.Crash(ZeroFill))); what != "" {
			t.Fatalf("ZeroFill: wrong %s: %d", what, where)
		}
	})
}

func read(t *rapid.T, f *FS) []byte {
	b, err := vfs.ReadFile(f, "f", 1<<20)
	must(t, err)
	return b
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
