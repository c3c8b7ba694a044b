// Package answers keeps texts that were made from messages on disk, for the next process that asks for the same. It is
// a cache, the folder derived/answers of a store: nothing depends on it, and no fault of it makes an operation fail.
//
// An answer has its question as its name. It counts as long as the commits are the same, which the caller compares as a
// sum, and as long as none of the message files was edited by hand. A removal for good removes all answers.
package answers

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	// Derived has all caches made from messages, relative to the store.
	Derived = "derived"
	// View is the name of the answers there.
	View = "answers"
	// Folder has the answers.
	Folder = Derived + "/" + View
)

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
	store *os.Root
	root  *os.Root
	size  int64
	drawn []folder
}

// Open opens the cache of the store in a folder. It returns nil if a removal of messages is not finished, or if the
// cache cannot be used. Open it before reading what the answer is made from.
func Open(dir string, size int64) *Cache {
	store, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	root, err := openFolder(store)
	if err != nil || IsErasing(dir) {
		_ = store.Close()
		return nil
	}
	return &Cache{store: store, root: root, size: min(cmp.Or(size, DefaultSize), maxSize)}
}

func openFolder(store *os.Root) (*os.Root, error) {
	for _, folder := range []string{Derived, Folder} {
		if err := store.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if info, err := store.Lstat(folder); err != nil || !info.IsDir() { // a link may lead to messages
			return nil, errors.Join(err, errors.ErrUnsupported)
		}
	}
	return store.OpenRoot(Folder)
}

// IsErasing reports whether messages of the store in a folder are removed for good, or such a removal was interrupted.
func IsErasing(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, Derived, "erasing"))
	return err == nil
}

// Close releases the cache.
func (c *Cache) Close() {
	if c != nil {
		_, _ = c.root.Close(), c.store.Close()
	}
}

// head is the first line of an answer after its sum.
type head struct {
	Commits string   `json:"commits"` // their sum
	Files   []folder `json:"files"`
}

// Draw notes messages of a context that the answer is made from.
func (c *Cache) Draw(context uuid.UUID, messages []Message) {
	if c == nil {
		return
	}
	at := map[string]int{}
	for _, m := range messages {
		i, ok := at[m.Folder]
		if !ok {
			i = len(c.drawn)
			at[m.Folder] = i
			c.drawn = append(c.drawn, folder{Context: context, Name: m.Folder})
		}
		c.drawn[i].Files = append(c.drawn[i].Files, file{ID: m.ID, At: m.StoredAt.UnixMicro()})
	}
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
			if h.Commits != hex.EncodeToString(commits[:]) || !areUntouched(c.store, h.Files) {
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
	if c == nil || !areUntouched(c.store, c.drawn) {
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
func Drop(dir string) (err error) {
	store, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	const attempts = 100
	for range attempts {
		if err = store.RemoveAll(Folder); err == nil {
			return nil
		}
	}
	return err
}
