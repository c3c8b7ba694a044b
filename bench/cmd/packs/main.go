// Packs measures how a pack's frame size and level were chosen, and what package archive makes of real conversations.
//
//	ctxtool --store STORE import PATH…
//	go run ./cmd/packs STORE > packs.md
//
// It needs the zstd command, changes nothing in STORE and makes its packs in a temporary folder beside it.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: packs STORE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "packs:", err)
		os.Exit(1)
	}
}

func run(store string) error {
	contexts, err := load(store)
	if err != nil {
		return err
	}
	if len(contexts) == 0 {
		return fmt.Errorf("no contexts in %s", store)
	}
	if err := frames(contexts); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(store, ".packs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return packs(dir, contexts)
}

// conversation is a context of the store as it is before it is archived.
type conversation struct {
	name     string
	messages []stored // by line and position
	raw      int64    // bytes of the message files
	zstd10   int64    // of the messages, concatenated
	rows     size
	metadata size // metadata.json and index.json
	files    size // message files
	blobs    size // those that no other context refers to
	payloads [][]byte
}

type stored struct {
	line     uuid.UUID
	position int64
	path     string
	content  []byte // with the newline
}

// size is of files: their bytes and the blocks they take, in bytes.
type size struct{ bytes, blocks int64 }

func (s *size) add(o size) { s.bytes += o.bytes; s.blocks += o.blocks }

func sizeOf(path string) (size, error) {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	return size{st.Size, st.Blocks * 512}, err
}

var reference = regexp.MustCompile(`"\$blob": ?"([0-9a-f]{64})"`)

func load(store string) ([]*conversation, error) {
	fsys, err := vfs.OS(filepath.Join(store))
	if err != nil {
		return nil, err
	}
	defer fsys.Close()
	blobs := blob.Open(fsys)
	metadata, err := filepath.Glob(filepath.Join(store, "*", "metadata.json"))
	if err != nil {
		return nil, err
	}
	var all []*conversation
	refers := map[blob.Sum][]*conversation{}
	var order []blob.Sum // as the messages refer to them
	for _, m := range metadata {
		c, refs, err := loadOne(filepath.Dir(m))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		for _, sum := range refs {
			if len(refers[sum]) == 0 {
				order = append(order, sum)
			}
			refers[sum] = append(refers[sum], c)
		}
	}
	for _, sum := range order {
		if len(refers[sum]) > 1 {
			continue
		}
		c := refers[sum][0]
		b, err := blobs.Get(sum, 1<<30)
		if err != nil {
			return nil, err
		}
		s, err := sizeOf(filepath.Join(store, filepath.FromSlash(blob.Path(sum))))
		if err != nil {
			return nil, err
		}
		c.blobs.add(s)
		c.payloads = append(c.payloads, b)
	}
	return all, nil
}

func loadOne(dir string) (*conversation, []blob.Sum, error) {
	c := &conversation{name: filepath.Base(dir)}
	var refs []blob.Sum
	var all bytes.Buffer
	files, err := filepath.Glob(filepath.Join(dir, "messages", "*", "*.json"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		e, err := message.Parse(b)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		s, err := sizeOf(path)
		if err != nil {
			return nil, nil, err
		}
		c.files.add(s)
		c.messages = append(c.messages, stored{e.Line, e.Position, path, b})
	}
	slices.SortFunc(c.messages, func(a, b stored) int {
		return cmp.Or(bytes.Compare(a.line[:], b.line[:]), cmp.Compare(a.position, b.position))
	})
	for _, m := range c.messages {
		all.Write(m.content)
		for _, found := range reference.FindAllSubmatch(m.content, -1) {
			sum, err := blob.ParseSum(string(found[1]))
			if err != nil {
				return nil, nil, err
			}
			if !slices.Contains(refs, sum) {
				refs = append(refs, sum)
			}
		}
	}
	c.raw = int64(all.Len())
	cmd := exec.Command("zstd", "-10", "-c")
	cmd.Stdin = &all
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("zstd -10: %w", err)
	}
	c.zstd10 = int64(len(out))
	rows, err := filepath.Glob(filepath.Join(dir, "index", "*.rows"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range rows {
		s, err := sizeOf(path)
		if err != nil {
			return nil, nil, err
		}
		c.rows.add(s)
	}
	for _, name := range []string{"metadata.json", "index.json"} {
		s, err := sizeOf(filepath.Join(dir, name))
		if err != nil {
			return nil, nil, err
		}
		c.metadata.add(s)
	}
	return c, refs, nil
}
