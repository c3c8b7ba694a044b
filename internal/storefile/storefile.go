// Package storefile reads and writes ctxdir.json, the file that makes a folder a store.
package storefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	Name    = "ctxdir.json" // describes the store, as an [Info]
	version = "store/1"
	maxSize = 1 << 20 // of the file, in bytes
)

var (
	// ErrNoStore: the folder is not a store.
	ErrNoStore = errors.New("not a store")
	// ErrUnusable: ctxdir.json is damaged, or missing from a folder with contexts.
	ErrUnusable = errors.New(Name + " is unusable")
)

// Info is the content of ctxdir.json.
type Info struct {
	Version   string    `json:"ctxdir"`
	ID        uuid.UUID `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Features  features  `json:"features"`
	Settings  Settings  `json:"settings"`
}

// features names the features that a store uses beyond version 1. This program knows none yet.
type features struct {
	Compatible         []string `json:"compatible"`
	ReadOnlyCompatible []string `json:"read_only_compatible"`
	Incompatible       []string `json:"incompatible"`
}

// Settings are the settings in ctxdir.json, for every program that uses the store. A number of 0, or below, is as good
// as a missing one, except for TextThreshold.
type Settings struct {
	TextThreshold *int64   `json:"text_threshold,omitempty"` // see [engine.WithTextThreshold]
	ArchiveAfter  int64    `json:"archive_after,omitempty"`  // seconds since its commit after which a message is archived
	KeepLast      int64    `json:"keep_last,omitempty"`      // the newest messages of each branch, which are not archived
	TrashGrace    int64    `json:"trash_grace,omitempty"`    // seconds for which removed data stays
	CacheSize     int64    `json:"cache_size,omitempty"`     // see [engine.WithPool]
	MaxTokens     int64    `json:"max_tokens,omitempty"`     // of an assembled context
	StorageMode   string   `json:"storage_mode,omitempty"`   // who else may hold conversations
	Modes         []Mode   `json:"modes,omitempty"`          // likewise, of contexts and projects
	Extraction    string   `json:"extraction,omitempty"`     // what extracts the essence of conversations
	Remotes       []Remote `json:"remotes,omitempty"`        // other stores, to be brought together with this one
}

// Mode is the storage mode of a context, or of the contexts of a project.
type Mode struct {
	Context uuid.UUID `json:"context,omitzero"`
	Project string    `json:"project,omitempty"`
	Mode    string    `json:"mode"`
}

// Remote is another store.
type Remote struct {
	Name  string            `json:"name"`
	Peer  string            `json:"peer"`            // where it is
	Store uuid.UUID         `json:"store,omitzero"`  // its id, once it was reached
	Map   map[string]string `json:"paths,omitempty"` // what paths of its machine are on this one
}

// Grace returns the grace period of removed data, 0 for the default.
func (s Settings) Grace() time.Duration { return time.Duration(max(s.TrashGrace, 0)) * time.Second }

// Patterns that show that a newer program wrote an unparsable ctxdir.json.
var (
	newerStore = regexp.MustCompile(`"ctxdir"\s*:\s*"store/(?:[02-9]|1\d)`)
	newFeature = regexp.MustCompile(`"(?:incompatible|read_only_compatible)"\s*:\s*\[\s*"`)
)

// Read reads ctxdir.json. Its error is ErrNoStore, or wraps ErrUnusable, [ctxfolder.ErrVersion] or an error of the file
// system.
func Read(fsys vfs.FS) (info Info, err error) {
	b, err := vfs.ReadFile(fsys, Name, maxSize)
	there, serr := fsys.Lstat(Name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(serr, fs.ErrNotExist):
		if !holdsContexts(fsys) {
			return info, ErrNoStore
		}
		return info, fmt.Errorf("%w: it is missing, but the folder holds contexts", ErrUnusable)
	case errors.Is(err, vfs.ErrTooLarge), serr == nil && !there.Mode().IsRegular():
		return info, fmt.Errorf("%w: %w", ErrUnusable, err)
	case err != nil:
		return info, err
	}
	b = message.Text(b)
	err = json.Unmarshal(b, &info)
	switch {
	case err == nil && info.Version != version && strings.HasPrefix(info.Version, "store/"):
		return info, fmt.Errorf("%w: %s has version %q, expected %q", ctxfolder.ErrVersion, Name, info.Version, version)
	case err != nil && (newerStore.Match(b) || newFeature.Match(b)):
		return info, fmt.Errorf("%w: %s is damaged and was written by a newer program", ctxfolder.ErrVersion, Name)
	case len(bytes.Trim(b, " \t\r\n\x00")) == 0:
		return info, fmt.Errorf("%w: it is empty", ErrUnusable)
	case err != nil:
		return info, fmt.Errorf("%w: %w", ErrUnusable, err)
	case info.Version != version || info.ID == uuid.Nil:
		return info, fmt.Errorf("%w: it lacks the format version and the id of the store", ErrUnusable)
	case len(info.Features.Incompatible) > 0:
		return info, fmt.Errorf("%w: the store needs %s", ctxfolder.ErrVersion, strings.Join(info.Features.Incompatible, ", "))
	}
	return info, nil
}

// contextFolders yields the names of folders that are contexts, also names in upper case.
func contextFolders(fsys vfs.FS, yield func(name string) bool) error {
	for e, err := range fsys.ReadDir(".") {
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(strings.ToLower(e.Name())); !ok || !e.IsDir() || !isContext(fsys, e.Name()) {
			continue
		}
		if !yield(e.Name()) {
			return nil
		}
	}
	return nil
}

// isContext reports whether a folder holds a part of a context.
func isContext(store vfs.FS, name string) bool {
	for e, err := range store.ReadDir(name) {
		if err != nil {
			break
		}
		_, log := journal.ParseName(e.Name())
		if log || slices.Contains([]string{ctxfolder.MetadataFile, ctxfolder.Segments, ctxfolder.Messages}, e.Name()) {
			return true
		}
	}
	return false
}

func holdsContexts(fsys vfs.FS) (some bool) {
	_ = contextFolders(fsys, func(string) bool { some = true; return false })
	return some
}

// RecordedID returns the store id that most contexts record, from at most limit contexts. Without any it returns a new
// id. Where a context is of a newer program, the error wraps ctxfolder.ErrVersion: the store may be newer too.
func RecordedID(fsys vfs.FS, limit int) (id uuid.UUID, err error) {
	counts := map[uuid.UUID]int{}
	look := func(name string) bool {
		var dir vfs.FS
		if dir, err = fsys.Sub(name); err != nil {
			return false
		}
		defer dir.Close()
		var of uuid.UUID
		if of, err = index.StoreOf(dir); err == nil && of != uuid.Nil {
			counts[of]++
		}
		limit--
		return err == nil && limit > 0
	}
	if lerr := contextFolders(fsys, look); err == nil {
		err = lerr
	}
	for of, n := range counts {
		if n > counts[id] || n == counts[id] && bytes.Compare(of[:], id[:]) < 0 {
			id = of
		}
	}
	if id == uuid.Nil {
		id = uuid.New()
	}
	return id, err
}

// Write writes ctxdir.json durably and moves an old one to the trash. The caller holds the store's lock.
func Write(fsys vfs.FS, id uuid.UUID, values Settings) error {
	switch there, err := vfs.Exists(fsys, Name); {
	case err != nil:
		return err
	case there:
		item := ctxfolder.TrashItem{Kind: ctxfolder.TrashDamaged, Name: Name}
		_, err := ctxfolder.IntoTrash(fsys, item, func(folder string) error { return fsys.Rename(Name, folder+"/"+Name) })
		if err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(Info{
		Version: version, ID: id, CreatedAt: time.Now().UTC(),
		Features: features{[]string{}, []string{}, []string{}}, Settings: values,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := fsys.Replace(Name, append(b, '\n')); err != nil {
		return err
	}
	return fsys.SyncDir(".")
}
