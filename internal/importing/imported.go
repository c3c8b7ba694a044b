package importing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	importsFile    = engine.DerivedFolder + "/" + importsView + ".json"
	importsVersion = "imports/1"
	maxImports     = 1 << 16  // histories in the file
	maxImportsFile = 64 << 20 // its size, in bytes
)

// Cache is the cache of the histories that the store holds completely: derived/imports.json. It has checksums, ids and
// numbers of commits, and no text. Its loss costs one more reading of each history. A history counts as imported while
// no commit followed that import in any context which it fed: after an append, a rewind, a removal or a restored backup
// the import reads it again. Cache implements [importer.Known].
type Cache struct {
	of    *Store
	mu    sync.Mutex
	all   map[string]importedHistory // as read, by the checksum of the path, in hexadecimal digits
	noted map[string]notedHistory    // by this process
	fresh bool                       // some were noted since the last Save
}

// notedHistory is a history whose contexts only imports of this process have changed since it was noted.
type notedHistory struct {
	state    string
	contexts map[uuid.UUID]int // the run of imports of each
}

type importsContent struct {
	Version string                     `json:"ctxdir"`
	Store   uuid.UUID                  `json:"store"`
	All     map[string]importedHistory `json:"histories"`
}

type importedHistory struct {
	State    string            `json:"state"`
	Contexts []importedContext `json:"contexts"`
}

// importedContext is a context as an import left it.
type importedContext struct {
	ID    uuid.UUID `json:"id"`
	Seq   uint64    `json:"seq"`
	Chain uint64    `json:"chain,string"`
}

// newCache reads the cache. A missing, damaged or foreign one is empty.
func newCache(s *Store) *Cache {
	return &Cache{of: s, all: readImports(s.s), noted: map[string]notedHistory{}}
}

// destination is a store with its cache, which is read when an import asks for it first.
type destination struct {
	*Store
	cache func() *Cache
}

// Destination returns the store with its cache. It is for one run of imports.
func (s *Store) Destination() importer.Destination {
	return destination{s, sync.OnceValue(func() *Cache { return newCache(s) })}
}

func (d destination) Has(ctx context.Context, h importer.History) bool { return d.cache().Has(ctx, h) }

func (d destination) Note(h importer.History, contexts []uuid.UUID) { d.cache().Note(h, contexts) }

func (d destination) Save() error {
	return engine.Wrap(engine.Error{Op: "save", Path: importsFile}, d.cache().Save())
}

// readImports returns the content of the file, whose first line is the checksum of the others.
func readImports(s *engine.Store) map[string]importedHistory {
	empty := map[string]importedHistory{}
	if s.IsErasing() {
		return empty
	}
	b, err := vfs.ReadRegular(s.FS, importsFile, maxImportsFile)
	if err != nil {
		return empty
	}
	sum, content, _ := bytes.Cut(b, []byte{'\n'})
	if is := sha256.Sum256(content); string(sum) != hex.EncodeToString(is[:]) {
		return empty
	}
	var x importsContent
	if json.Unmarshal(content, &x) != nil || x.Version != importsVersion || x.Store != s.ID() || x.All == nil {
		return empty
	}
	return x.All
}

// Has implements [importer.Known].
func (i *Cache) Has(ctx context.Context, h importer.History) bool {
	key := hex.EncodeToString(h.Path[:])
	i.mu.Lock()
	x, ok := i.all[key]
	i.mu.Unlock()
	if !ok || x.State != hex.EncodeToString(h.State[:]) || len(x.Contexts) == 0 {
		return false
	}
	noted := notedHistory{x.State, map[uuid.UUID]int{}}
	for _, left := range x.Contexts {
		is := journal.Position{Seq: left.Seq, Chain: left.Chain}
		err := i.of.s.Use(ctx, left.ID, func(c *engine.Context) error {
			if at, err := c.Index.At(); err != nil || c.Legacy() != "" || at != is {
				return errors.Join(errAnotherCommit, err)
			}
			return nil
		})
		if err != nil {
			return false
		}
		noted.contexts[left.ID] = i.of.left.join(left.ID, is)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if old := i.noted[key]; old.state != noted.state || !maps.Equal(old.contexts, noted.contexts) {
		i.noted[key], i.fresh = noted, true // another file may change the context before Save
	}
	return true
}

var errAnotherCommit = errors.New("the context has changed since the import")

// Note implements [importer.Known].
func (i *Cache) Note(h importer.History, contexts []uuid.UUID) {
	x := notedHistory{hex.EncodeToString(h.State[:]), map[uuid.UUID]int{}}
	for _, id := range contexts {
		x.contexts[id] = i.of.left.of(id).run
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.noted[hex.EncodeToString(h.Path[:])], i.fresh = x, true
}

// resolve returns a noted history with the present commits of its contexts. ok is false if another writer changed one.
func (x *notedHistory) resolve(left *importRuns) (h importedHistory, ok bool) {
	h.State = x.state
	for id, run := range x.contexts {
		is := left.of(id)
		if is.run != run || is.at.Seq == 0 {
			return h, false
		}
		h.Contexts = append(h.Contexts, importedContext{id, is.at.Seq, is.at.Chain})
	}
	slices.SortFunc(h.Contexts, func(a, b importedContext) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return h, true
}

// Save writes what was noted since the last call, beside what other processes wrote.
//
// Crash order: everything that it names is durable. The file is replaced as a whole.
func (i *Cache) Save() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.fresh || i.of.s.ReadOnly || i.of.s.IsErasing() {
		return nil
	}
	all, changed := readImports(i.of.s), false
	for key, x := range i.noted {
		old, had := all[key]
		switch h, ok := x.resolve(&i.of.left); {
		case ok:
			changed = changed || old.State != h.State || !slices.Equal(old.Contexts, h.Contexts)
			all[key], i.all[key] = h, h
		case had:
			changed = true
			delete(all, key)
		}
	}
	if !changed {
		i.fresh = false
		return nil
	}
	for key := range all {
		if len(all) <= maxImports {
			break
		}
		delete(all, key)
	}
	content, err := json.Marshal(importsContent{importsVersion, i.of.s.ID(), all})
	if err != nil {
		return err
	}
	if err := i.of.s.FS.Mkdir(engine.DerivedFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	sum := sha256.Sum256(content)
	if err := i.of.s.FS.Replace(importsFile, slices.Concat([]byte(hex.EncodeToString(sum[:])+"\n"), content)); err != nil {
		return err
	}
	i.fresh = false
	return nil
}

var _ importer.Known = (*Cache)(nil)
