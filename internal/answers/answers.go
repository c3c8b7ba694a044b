// Package answers keeps texts that were made from messages on disk, for the next process that asks for the same. It is
// a cache, the folder derived/answers of a store: nothing depends on it, and no fault of it makes an operation fail.
//
// An answer has its question as its name. It counts as long as the commits are the same, which the caller compares as a
// sum, and as long as none of the message files was edited by hand. A removal for good removes all answers.
package answers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path"
	"regexp"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Folder has the answers, relative to the store.
const Folder = engine.DerivedFolder + "/answers"

// DefaultSize bounds the answers of a store without the setting cache_size, in bytes.
const DefaultSize = 64 << 20

// maxSize bounds them whatever the setting says.
const maxSize = 1 << 30

// maxAnswer bounds one answer, in bytes.
const maxAnswer = 16 << 20

// Sum identifies a question, or the commits that an answer was made from.
type Sum = [sha256.Size]byte

// Cache is the cache of a store, open for one answer. Its methods do nothing if it is nil.
//
// It keeps the folder open: if a removal of messages removes the folder, nothing that was read before can come into the
// new one.
type Cache struct {
	e    *engine.Store
	root *os.Root
	size int64

	drawn  []folder
	failed bool // drawn is incomplete
}

// Open opens the cache of a store. It returns nil if the store is read-only, if an interrupted removal of messages is
// not finished, or if the folder cannot be used. Open it before reading what the answer is made from.
func Open(e *engine.Store, size int64) *Cache {
	if e.ReadOnly || e.Options.FS != nil || e.IsErasing() {
		return nil
	}
	store, err := os.OpenRoot(e.Path())
	if err != nil {
		return nil
	}
	defer store.Close()
	for _, folder := range []string{engine.DerivedFolder, Folder} {
		if err := store.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil
		}
		if info, err := store.Lstat(folder); err != nil || !info.IsDir() { // a link may lead to messages
			return nil
		}
	}
	root, err := store.OpenRoot(Folder)
	if err != nil {
		return nil
	}
	return &Cache{e: e, root: root, size: min(cmp.Or(size, DefaultSize), maxSize)}
}

// Close releases the cache.
func (c *Cache) Close() {
	if c != nil {
		_ = c.root.Close()
	}
}

// head is the first line of an answer after its sum.
type head struct {
	Commits string   `json:"commits"` // their sum
	Files   []folder `json:"files"`
}

// Get returns the answer to a question, nil if there is none that still counts.
func (c *Cache) Get(question, commits Sum) []byte {
	if c == nil {
		return nil
	}
	name := hex.EncodeToString(question[:])
	b, err := c.read(name)
	if err != nil {
		return nil
	}
	var h head
	if len(b) > 2*sha256.Size && b[2*sha256.Size] == '\n' {
		sum, rest := string(b[:2*sha256.Size]), b[2*sha256.Size+1:]
		line, answer, ok := bytes.Cut(rest, []byte("\n"))
		if ok && sumOf(rest) == sum && json.Unmarshal(line, &h) == nil {
			if h.Commits != hex.EncodeToString(commits[:]) || !c.areUntouched(h.Files) {
				return nil // the next answer replaces it
			}
			now := time.Now()
			_ = c.root.Chtimes(name, now, now) // the least recently used one goes first
			return answer
		}
	}
	_ = c.root.Remove(name) // it is damaged
	return nil
}

func (c *Cache) read(name string) ([]byte, error) {
	f, err := c.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAnswer+1))
	if err == nil && len(b) > maxAnswer {
		b = nil
	}
	return b, err
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Put keeps an answer that was made from the messages of earlier calls of Draw, unless one of their files is not as it
// was committed.
func (c *Cache) Put(question, commits Sum, answer []byte) {
	if c == nil || c.failed || !c.areUntouched(c.drawn) {
		return
	}
	line, err := json.Marshal(head{hex.EncodeToString(commits[:]), c.drawn})
	if err != nil {
		return
	}
	rest := slices.Concat(line, []byte("\n"), answer)
	all := slices.Concat([]byte(sumOf(rest)), []byte("\n"), rest)
	if len(all) > maxAnswer || blocks(int64(len(all))) > c.size {
		return
	}
	unfinished := "new-" + rand.Text()
	f, err := c.root.OpenFile(unfinished, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // such as: a removal has removed the folder
	}
	_, err = f.Write(all)
	if err = errors.Join(err, f.Close()); err == nil {
		err = c.root.Rename(unfinished, hex.EncodeToString(question[:]))
	}
	if err != nil {
		_ = c.root.Remove(unfinished)
		return
	}
	c.shrink()
}

// Draw notes messages of a context that the answer is made from. It costs little while the context is open.
func (c *Cache) Draw(ctx context.Context, id uuid.UUID, messages []Message) {
	if c == nil || c.failed || len(messages) == 0 {
		return
	}
	slices.SortFunc(messages, func(a, b Message) int {
		return cmp.Or(bytes.Compare(a.Line[:], b.Line[:]), cmp.Compare(a.Position, b.Position))
	})
	err := c.e.Use(ctx, id, func(x *engine.Context) error {
		found, err := foldersOf(x, slices.Compact(messages))
		c.drawn = append(c.drawn, found...)
		return err
	})
	c.failed = err != nil
}

// areUntouched reports whether message files are as they were committed. A missing one is.
func (c *Cache) areUntouched(folders []folder) bool {
	for _, f := range folders {
		if !ctxfolder.ValidFolder(f.Name) {
			return false
		}
		names := make([]string, len(f.Files))
		for i := range f.Files {
			names[i] = ctxfolder.MessageFile(f.Files[i].ID)
		}
		infos, err := vfs.LstatIn(c.e.FS, path.Join(f.Context.String(), ctxfolder.Messages, f.Name), names...)
		if errors.Is(err, fs.ErrNotExist) { // no folder
			infos, err = make([]fs.FileInfo, len(names)), nil
		}
		if err != nil {
			return false
		}
		for i := range f.Files {
			m := &f.Files[i]
			if infos[i] != nil && !ctxfolder.Untouched(infos[i], m.Size, time.UnixMicro(m.At)) {
				return false
			}
		}
	}
	return true
}

// blocks is what a file of this size takes on a disk.
func blocks(size int64) int64 { return (size + 4095) &^ 4095 }

// own are the names of files that the cache makes.
var own = regexp.MustCompile(`^(?:[0-9a-f]{64}|new-[0-9A-Z]+)$`)

// A look at the size of all answers costs 10 us for each. So where there are many, one call of shrink in eight looks,
// and makes room for eight at least.
const (
	many     = 64
	lookOnce = 8
)

// shrink removes answers if they are over the bound, the least recently used one first.
func (c *Cache) shrink() {
	f, err := c.root.Open(".")
	if err != nil {
		return
	}
	names, err := f.Readdirnames(-1)
	_ = f.Close()
	if err != nil || len(names) > many && mathrand.N(lookOnce) > 0 {
		return
	}
	var all []fs.FileInfo
	total := int64(0)
	for _, name := range names {
		if info, err := c.root.Lstat(name); err == nil && info.Mode().IsRegular() && own.MatchString(name) {
			all = append(all, info)
			total += blocks(info.Size())
		}
	}
	if total <= c.size {
		return
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range all {
		if total <= c.size-c.size/8 {
			return
		}
		if c.root.Remove(info.Name()) == nil {
			total -= blocks(info.Size())
		}
	}
}

// Drop removes all answers. A process that has read what the store has lost, and keeps an answer now, has the removed
// folder open: it may fill the folder once more, but not after it is gone.
func Drop(e *engine.Store) (err error) {
	if e.ReadOnly {
		return nil
	}
	if _, err := e.FS.Lstat(Folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	const attempts = 100
	for range attempts {
		if err = vfs.RemoveAll(e.FS, Folder); err == nil {
			return e.FS.SyncDir(engine.DerivedFolder)
		}
	}
	return err
}
