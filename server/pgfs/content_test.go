package pgfs

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// text returns what a content shows.
func (c *content) text(t *rapid.T) []byte {
	var b []byte
	for _, p := range c.pieces {
		if p.off != int64(len(b)) || p.end <= p.off {
			t.Fatalf("a piece from %d to %d after %d bytes", p.off, p.end, len(b))
		}
		part := make([]byte, p.end-p.off)
		copyPiece(part, p.off, p, p.x.data)
		b = append(b, part...)
	}
	return b
}

// TestContent writes and truncates, beside writes of a flush that succeeds or fails, and compares what shows, and what the
// stored extents would show.
func TestContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c content
		var model, synced []byte
		stored := map[int64]*extent{}
		write := func() {
			off := rapid.Int64Range(0, 3000).Draw(t, "offset")
			if rapid.Bool().Draw(t, "at the end") {
				off = int64(len(model))
			}
			b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, rapid.IntRange(0, 2000).Draw(t, "length"))
			if rapid.Bool().Draw(t, "mixed") {
				for i := range b {
					b[i] += byte(i)
				}
			}
			if len(b) == 0 {
				return
			}
			if short := off + int64(len(b)) - int64(len(model)); short > 0 {
				model = append(model, make([]byte, short)...)
			}
			copy(model[off:], b)
			c.write(b, off)
		}
		flush := func() {
			sent, dead := c.take()
			now := slices.Clone(model)
			for range rapid.IntRange(0, 2).Draw(t, "beside") {
				write()
			}
			if rapid.Bool().Draw(t, "fails") {
				c.untake(sent, dead)
				return
			}
			for _, n := range dead {
				delete(stored, n)
			}
			for _, x := range sent {
				stored[x.n] = &extent{n: x.n, off: x.off, size: x.size, data: slices.Clone(x.data), run: x.run}
			}
			synced = now
			c.settle(sent)
			for _, x := range sent {
				x.data = stored[x.n].data
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(*rapid.T) { write() },
			"truncate": func(*rapid.T) {
				size := rapid.Int64Range(0, 4000).Draw(t, "size")
				c.truncate(size)
				model = append(model, make([]byte, 4000)...)[:size]
			},
			"flush": func(*rapid.T) { flush() },
			"": func(t *rapid.T) {
				if !bytes.Equal(c.text(t), model) {
					t.Fatal("it shows something else")
				}
				var again content
				again.fill(0xee, 0, int64(len(synced)))
				for _, n := range slices.Sorted(maps.Keys(stored)) {
					x := stored[n]
					end := min(x.off+x.size, int64(len(synced)))
					if x.off < end {
						again.place(x.off, end, x)
					}
				}
				if !bytes.Equal(again.text(t), synced) {
					t.Fatal("the stored extents show something else")
				}
			},
		})
	})
}

// TestFolderTimes: folders keep their times, the first one too. Caches of what a folder holds rely on it.
func TestFolderTimes(t *testing.T) {
	d := newDisk(t)
	f := d.open()
	check(t, f.Mkdir("below"))
	check(t, f.Mkdir("below/it"))
	times := func(f *FS) (at [2]int64) {
		for i, name := range []string{".", "below"} {
			info, err := f.Lstat(name)
			check(t, err)
			at[i] = info.ModTime().UnixNano()
		}
		return at
	}
	want := times(f)
	check(t, f.Close())
	f = d.open()
	defer f.Close()
	if got := times(f); got != want || got[0] == 0 {
		t.Errorf("%d, want %d", got, want)
	}
}
