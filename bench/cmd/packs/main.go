// Packs measures how a pack's frame size and level were chosen, and what archiving makes of real conversations.
//
//	go run ./cmd/packs [-out FILE] [-dir FOLDER] PATH…
//
// PATH are files and folders of other tools' histories, as "ctxtool import" takes them. It needs the zstd command.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

func main() {
	out := flag.String("out", "", "write to this `FILE`")
	dir := flag.String("dir", "", "make stores in this `FOLDER`")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	var report bytes.Buffer
	err := run(&report, *dir, flag.Args())
	if err == nil && *out != "" {
		err = os.WriteFile(*out, report.Bytes(), 0o600)
	} else if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "packs:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir string, paths []string) error {
	dir, err := os.MkdirTemp(dir, "packs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plain, copied := filepath.Join(dir, "plain"), filepath.Join(dir, "archived")
	if err := importAll(plain, paths); err != nil {
		return err
	}
	if err := copyStore(plain, copied); err != nil {
		return err
	}
	contexts, err := load(plain)
	if err != nil {
		return err
	}
	fmt.Fprint(out, head)
	if err := archived(out, plain, copied, contexts); err != nil {
		return err
	}
	fmt.Fprint(out, framesHead)
	return frames(out, contexts)
}

const head = `# Archiving real conversations

Made by ` + "`go run ./cmd/packs`" + ` in bench/. Every context is archived whole, in one pack; what is left in
trash by the collection of blobs is emptied.

- *bytes* and *blocks*: how much less the files of a context take, journals and trash left out on both sides, and the
  blobs that no other context refers to included on both. Folders are not counted: a folder of a thousand message files
  takes another 100 KB on ext4, and goes.
- *pack to zstd -10*: the pack's size without payloads, tables included, to that of ` + "`zstd -10`" + ` over the same
  envelopes, one after the other.
- *read one*: the median of 60 messages at random, each in a context that was just opened, by position, from looking it
  up to the message; *the slowest* of them; in the system's memory as all here.
- *branches, to files*: reading every branch of a context that was just opened, archived, as a multiple of the same from
  message files; medians of nine rounds, taken in turns.

`

const framesHead = `
## Frames

`

// importAll makes a store of other tools' histories, all of it in message files.
func importAll(store string, paths []string) error {
	ctx := context.Background()
	s, err := ctxdir.Init(store)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			for _, err := range importer.Import(ctx, s.Importer(), path, importer.Options{}) {
				if err != nil {
					fmt.Fprintln(os.Stderr, "packs: passed over:", err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for id, err := range s.IDs() {
		if err != nil {
			return err
		}
		// A context that was archived and is not any more has message files and no journals.
		if _, err := s.Archive(ctx, ctxdir.ArchiveOptions{Contexts: []uuid.UUID{id}}); err != nil {
			return err
		}
		c, err := s.Context(ctx, id)
		if err != nil {
			return err
		}
		_, err = c.Unarchive(ctx, nil)
		if err = errors.Join(err, c.Close()); err != nil {
			return err
		}
	}
	return nil
}

// conversation is a context of the store as it is before it is archived.
type conversation struct {
	name     string
	id       uuid.UUID
	messages []stored // by line and position
	raw      int64    // bytes of the message files
	zstd10   int64    // of the messages, concatenated
	blobs    []string // paths of those that no other context refers to
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
		c.blobs = append(c.blobs, filepath.FromSlash(blob.Path(sum)))
	}
	return all, nil
}

func loadOne(dir string) (*conversation, []blob.Sum, error) {
	id, err := uuid.Parse(filepath.Base(dir))
	if err != nil {
		return nil, nil, err
	}
	c := &conversation{name: filepath.Base(dir), id: id}
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
	return c, refs, nil
}
