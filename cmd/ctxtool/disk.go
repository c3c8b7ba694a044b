package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// diskUse is what files take: their sizes, and the room on the disk, where a small file takes a whole block.
type diskUse struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	Disk  int64 `json:"disk_bytes"`
}

func (u *diskUse) add(o diskUse) {
	u.Files, u.Bytes, u.Disk = u.Files+o.Files, u.Bytes+o.Bytes, u.Disk+o.Disk
}

// The kinds of files in a store.
const (
	diskMessages = "messages"
	diskJournals = "journals"
	diskIndex    = "index"
	diskPacks    = "packs"
	diskBlobs    = "blobs"
	diskTrash    = "trash"
	diskDerived  = "derived" // the search index
	diskOther    = "other"   // metadata, locks, caches
)

var diskKinds = []string{diskMessages, diskJournals, diskIndex, diskPacks, diskBlobs, diskTrash, diskDerived, diskOther}

// diskKind is the kind of a file, by its path in a context's folder.
func diskKind(path string) string {
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	switch {
	case first == "messages":
		return diskMessages
	case strings.HasPrefix(first, "journal-"):
		return diskJournals
	case first == "index" || first == "index.json":
		return diskIndex
	case first == "archive":
		return diskPacks
	case first == diskBlobs || first == diskTrash || first == diskDerived:
		return first
	}
	return diskOther
}

// folderUse is what the files below a folder take, by kind. Files that disappear meanwhile do not count.
func folderUse(ctx context.Context, dir string) (map[string]diskUse, error) {
	use := map[string]diskUse{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || path == dir {
			return nil //nolint:nilerr // it disappeared, or check reports it
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := uuid.Parse(rel); err == nil {
				return fs.SkipDir // a context in the folder of a store
			}
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it disappeared
		}
		one := diskUse{Disk: allocated(info)}
		if info.Mode().IsRegular() {
			one.Files, one.Bytes = 1, info.Size()
		}
		kind := use[diskKind(rel)]
		kind.add(one)
		use[diskKind(rel)] = kind
		return nil
	})
	return use, err
}

// sampleBytes bounds what is compressed to estimate what archiving would save, in bytes.
const sampleBytes = 2 << 20

// packedShare estimates the size of messages in a pack, as a share of their size: it compresses some of them.
func packedShare(ctx context.Context, dirs []string) float64 {
	var sample []byte
	for _, dir := range dirs {
		_ = filepath.WalkDir(filepath.Join(dir, "messages"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil || len(sample) >= sampleBytes {
				return fs.SkipAll
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Size() < sampleBytes {
				b, _ := os.ReadFile(path)
				sample = append(sample, b...)
			}
			return nil
		})
	}
	if len(sample) == 0 {
		return 0
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constants
	}
	return float64(len(encoder.EncodeAll(sample, nil))) / float64(len(sample))
}
