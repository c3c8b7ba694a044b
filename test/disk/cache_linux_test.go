package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// open is a disk without the file system around it.
func open(t *testing.T, blocks int64) *cache {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(blocks * blockSize); err != nil {
		t.Fatal(err)
	}
	return &cache{image: f, size: blocks * blockSize, latest: map[int64][]byte{}, supers: new(atomic.Uint64)}
}

func block(fill byte) []byte { return bytes.Repeat([]byte{fill}, blockSize) }

func (d *cache) blockAt(t *testing.T, n int64) byte {
	t.Helper()
	b := make([]byte, blockSize)
	if _, err := d.image.ReadAt(b, n*blockSize); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, block(b[0])) {
		t.Errorf("block %d is not whole", n)
	}
	return b[0]
}

// TestCut: whatever is lost, what was flushed stays, and what was not is whole or as it was.
func TestCut(t *testing.T) {
	for _, loss := range Losses() {
		t.Run(string(loss), func(t *testing.T) {
			some := map[byte]bool{}
			for seed := range uint64(50) {
				d := open(t, 4)
				for n, data := range [][]byte{block('a'), block('b')} {
					if errno := d.writeAt(data, int64(n)*blockSize); errno != 0 {
						t.Fatal(errno)
					}
				}
				if errno := d.flush(); errno != 0 {
					t.Fatal(errno)
				}
				for _, fill := range []byte{'c', 'd'} {
					if errno := d.writeAt(joined(block(fill), block(fill)), blockSize); errno != 0 {
						t.Fatal(errno)
					}
				}
				got := make([]byte, 4*blockSize)
				if errno := d.readAt(got, 0); errno != 0 || !bytes.Equal(got, joined(block('a'), block('d'), block('d'), block(0))) {
					t.Fatalf("what was written is not read back: %v", errno)
				}
				var c Cut
				d.cut(order{Loss: loss, Seed: seed}, func(gone Cut) { c = gone })
				if errno := d.flush(); errno == 0 {
					t.Fatal("a flush succeeded without power")
				}
				if c.Error != "" || c.Unflushed != 4 {
					t.Fatalf("%+v", c)
				}
				if d.blockAt(t, 0) != 'a' || d.blockAt(t, 3) != 0 {
					t.Fatal("what was flushed, or never written, is another one")
				}
				some[d.blockAt(t, 1)] = true
				d.blockAt(t, 2)
			}
			want := map[Loss]string{Nothing: "d", Writes: "bcd", Blocks: "bcd", Tail: "bcd", All: "b"}[loss]
			for _, fill := range []byte("bcd") {
				if some[fill] != bytes.Contains([]byte(want), []byte{fill}) {
					t.Errorf("%q after some cut: %v", fill, some[fill])
				}
			}
		})
	}
}

// TestFail: a refused write leaves nothing, and others succeed, writes to the log of XFS among them.
func TestFail(t *testing.T) {
	d := open(t, 4)
	d.fail(Faults{Of: []string{"abc", "xyz"}, Share: 0.5, Seed: 1})
	marked := append([]byte("-xyz-"), block('m')[5:]...)
	refused := 0
	for range 100 {
		if errno := d.writeAt(block('a'), 0); errno != 0 {
			t.Fatal(errno)
		}
		if errno := d.writeAt(joined(block('b'), marked), 0); errno == 0 {
			continue
		}
		refused++
		got := make([]byte, blockSize)
		if errno := d.readAt(got, 0); errno != 0 || !bytes.Equal(got, block('a')) {
			t.Fatal("a write that was refused is there")
		}
	}
	for range 100 {
		if errno := d.writeAt(joined(append([]byte("\xfe\xed\xba\xbe"), block('l')[4:]...), marked), 0); errno != 0 {
			t.Fatal("a write to a log was refused")
		}
	}
	if refused < 20 || refused > 80 || refused != d.failed {
		t.Errorf("%d of 100 writes were refused, counted %d", refused, d.failed)
	}
}

func joined(blocks ...[]byte) []byte { return bytes.Join(blocks, nil) }
