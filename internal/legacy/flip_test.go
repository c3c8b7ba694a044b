package legacy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// poolFirst is a context whose pool comes before everything else: nothing before it tells what the file is.
func poolFirst(whole string) string {
	from, to := strings.Index(whole, `"message_pool":`), strings.Index(whole, `"branches":`)
	return "{" + whole[from:to] + whole[1:from] + whole[to:]
}

// TestFlips flips each bit of a legacy context, one at a time. It is still known as one: it can be read to its end, or
// is damaged.
func TestFlips(t *testing.T) {
	whole := legacytest.Whole(id)
	emptied, node := legacytest.Split(whole), `{"id":"`+legacytest.ID(1)+`","message":{"role":"User","content":[]},"parent_id":null}`
	spaced := "\ufeff" + strings.NewReplacer(`":`, `": `, `,"`, ",\n  \"", "{", "{\n  ").Replace(whole)
	tests := []struct {
		name, flipped, asked string // flipped is the file with the bit
		files                map[string]string
	}{
		{"a file", "old.json", "old.json", map[string]string{"old.json": whole}},
		{"a file for people", "old.json", "old.json", map[string]string{"old.json": spaced}},
		{"a file, the pool first", "old.json", "old.json", map[string]string{"old.json": poolFirst(whole)}},
		{"a file named after it", id + ".json", id + ".json", map[string]string{id + ".json": whole}},
		{"context.json", "x/context.json", "x", map[string]string{"x/context.json": emptied, "x/messages_pool/a.json": node}},
		{"a node's file", "x/messages_pool/a.json", "x", map[string]string{"x/context.json": emptied, "x/messages_pool/a.json": node}},
		{"context.json alone", "x/context.json", "x/context.json", map[string]string{"x/context.json": emptied}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			disk, text, good := crashfs.New(), test.files[test.flipped], 0
			for name, text := range test.files {
				for i, c := range name {
					if c == '/' {
						_ = disk.Mkdir(name[:i])
					}
				}
				if err := vfs.WriteSynced(disk, name, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			for bit := range 8 * len(text) {
				b := []byte(text)
				b[bit/8] ^= 1 << (bit % 8)
				if err := disk.Replace(test.flipped, b); err != nil {
					t.Fatal(err)
				}
				format, err := legacy.Detect(disk, test.asked)
				if err != nil || !format.Legacy() {
					t.Fatalf("bit %d of byte %d: %q, %v\n%s", bit%8, bit/8, format, err, b)
				}
				if err = openWhole(disk, test.asked); err == nil {
					good++
				} else if !errors.Is(err, legacy.ErrDamaged) {
					t.Fatalf("bit %d of byte %d: %v\n%s", bit%8, bit/8, err, b)
				}
			}
			if want := test.name != "context.json alone"; want != (good > 0) {
				t.Errorf("%d of %d can be read", good, 8*len(text))
			}
		})
	}
}

// openWhole reads a legacy context to its end, every message of it.
func openWhole(disk vfs.FS, name string) error {
	f, err := legacy.Open(disk, name, legacy.Options{})
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range f.Len() {
		if _, err := f.Node(int32(i)); err != nil {
			return err
		}
	}
	return nil
}
