// Package disk says what the files of a store take on the disk, by kind, and what archiving would free.
package disk

import (
	"context"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// Use is what files take: their sizes, and the room on the disk, where a small file takes a whole block.
type Use struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	Disk  int64 `json:"disk_bytes"`
}

func (u *Use) add(o Use) {
	u.Files, u.Bytes, u.Disk = u.Files+o.Files, u.Bytes+o.Bytes, u.Disk+o.Disk
}

// Kinds of files in a store.
const (
	Messages = "messages" // their views
	Logs     = "logs"
	Segments = "segments"
	Blobs    = "blobs"
	Trash    = "trash"
	Derived  = "derived" // the search index
	Other    = "other"   // metadata, locks, caches
)

// Kinds are all of them.
var Kinds = []string{Messages, Logs, Segments, Blobs, Trash, Derived, Other}

// kindOf is the kind of a file, by its path in a context's folder.
func kindOf(name string) string {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case strings.HasPrefix(first, "log-"):
		return Logs
	case slices.Contains([]string{Messages, Segments, Blobs, Trash, Derived}, first):
		return first
	}
	return Other
}

// folderUse is what the files below a folder take, by kind. Files that disappear meanwhile do not count.
func folderUse(ctx context.Context, files fs.FS, dir string) (map[string]Use, error) {
	use := map[string]Use{}
	err := fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || name == dir {
			return nil //nolint:nilerr // it disappeared, or check reports it
		}
		rel := strings.TrimPrefix(name, dir+"/")
		if d.IsDir() {
			if _, err := uuid.Parse(rel); err == nil {
				return fs.SkipDir // a context in the folder of a store
			}
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it disappeared
		}
		one := Use{Disk: allocated(info)}
		if info.Mode().IsRegular() {
			one.Files, one.Bytes = 1, info.Size()
		}
		kind := use[kindOf(rel)]
		kind.add(one)
		use[kindOf(rel)] = kind
		return nil
	})
	return use, err
}

// Report collects what the files of a store take.
type Report struct {
	files fs.FS
	use   map[string]Use // by kind
	dirs  []string       // of the contexts
}

// NewReport returns an empty report on the store in a folder.
func NewReport(root string) *Report { return newReport(os.DirFS(root)) }

func newReport(files fs.FS) *Report { return &Report{files: files, use: map[string]Use{}} }

// Context adds a context, and returns the room that it takes.
func (d *Report) Context(ctx context.Context, id uuid.UUID) (disk int64, err error) {
	d.dirs = append(d.dirs, id.String())
	return d.add(ctx, id.String())
}

// Store adds the files of the store that belong to no context.
func (d *Report) Store(ctx context.Context) error {
	_, err := d.add(ctx, ".")
	return err
}

func (d *Report) add(ctx context.Context, dir string) (disk int64, err error) {
	use, err := folderUse(ctx, d.files, dir)
	for kind, u := range use {
		sum := d.use[kind]
		sum.add(u)
		d.use[kind] = sum
		disk += u.Disk
	}
	return disk, err
}

// Total is what all files take.
func (d *Report) Total() (sum Use) {
	for _, u := range d.use {
		sum.add(u)
	}
	return sum
}

// Freed estimates what archiving every message would free: the files of messages, and what compression saves in segments.
func (d *Report) Freed(ctx context.Context) int64 {
	if d.use[Messages].Files == 0 {
		return 0
	}
	return d.use[Messages].Disk + int64((1-compressedShare(ctx, d.files, d.dirs))*float64(d.use[Segments].Bytes))
}

// OfKind is what the files of a kind take.
func (d *Report) OfKind(kind string) Use { return d.use[kind] }

// Whole reports on everything in a store. Its files are those of its folder, or else files.
func Whole(ctx context.Context, s *ctxdir.Store, files fs.FS) (*Report, error) {
	if files == nil {
		files = os.DirFS(s.Info().Path)
	}
	d := newReport(files)
	for id, err := range s.IDs() {
		if err == nil {
			_, err = d.Context(ctx, id)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, d.Store(ctx)
}

// The sample that is compressed to estimate what archiving would save, in bytes.
const (
	sampleBytes  = 2 << 20
	samplePieces = 256 << 10 // of each segment
)

// compressedShare estimates the size of segments after an archive, as a share of their size: it compresses some bytes of
// them. Those of an archived context are compressed already.
func compressedShare(ctx context.Context, files fs.FS, dirs []string) float64 {
	var sample []byte
	for _, dir := range dirs {
		_ = fs.WalkDir(files, dir+"/"+Segments, func(name string, d fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil || len(sample) >= sampleBytes {
				return fs.SkipAll
			}
			if d.Type().IsRegular() {
				sample = append(sample, beginning(files, name, samplePieces)...)
			}
			return nil
		})
	}
	if len(sample) == 0 {
		return 1
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constants
	}
	return min(float64(len(encoder.EncodeAll(sample, nil)))/float64(len(sample)), 1)
}

// beginning returns the first n bytes of a file, or fewer.
func beginning(files fs.FS, name string, n int64) []byte {
	f, err := files.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, _ := io.ReadAll(io.LimitReader(f, n))
	return b
}
