package legacy

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// scanFolder notes the nodes of a split context that have files, and reads its system prompt.
func (f *File) scanFolder(sum hash.Hash) error {
	f.inline = len(f.nodes) > 0
	prompt, info, err := vfs.ReadStat(f.fs, f.name+"/"+PromptFile, f.limit)
	switch {
	case notThere(err):
	case err != nil:
		return err
	default:
		if f.Prompt, err = shallow(prompt); err != nil {
			return inFileNamed(PromptFile, err)
		}
		sum.Write([]byte(PromptFile))
		sum.Write(prompt)
		f.Size += int64(len(prompt))
		f.looked.add("/"+PromptFile, info)
	}
	pool := f.name + "/" + PoolFolder
	if info, err := f.fs.Lstat(pool); notThere(err) {
		return damaged("a split context without its messages: %s is not there", PoolFolder)
	} else if err == nil && !info.IsDir() {
		return damaged("a split context without its messages: %s is no folder", PoolFolder)
	}
	// The files come in any order. Combine their sums so that the order does not matter.
	var all [sha256.Size]byte
	names := map[key]string{}
	for e, err := range f.fs.ReadDir(pool) {
		if err != nil {
			return err
		}
		if !isNodeFile(e.Name()) {
			continue
		}
		if !e.Type().IsRegular() {
			return inFileNamed(PoolFolder+"/"+e.Name(), damaged("it is a folder, a link or a device"))
		}
		b, info, err := f.readNodeFile(e.Name())
		if err == nil {
			_, err = compacted(b)
		}
		if err != nil {
			return inFileNamed(PoolFolder+"/"+e.Name(), err)
		}
		f.looked.add("/"+PoolFolder+"/"+e.Name(), info)
		stem := strings.TrimSuffix(e.Name(), nodeEnd)
		k, isID := keyOf(stem)
		n := node{key: k, size: uint32(len(b)), flags: inFile}
		if isID {
			n.flags |= canonical
		} else {
			names[k] = stem
		}
		f.nodes = append(f.nodes, n)
		f.Size += int64(len(b))
		one := sha256.Sum256(append([]byte(e.Name()+"\x00"), b...))
		for i := range all {
			all[i] ^= one[i]
		}
		if f.read != nil {
			f.read(f.Size)
		}
		if f.stop != nil {
			if err := f.stop(); err != nil {
				return err
			}
		}
	}
	if len(f.nodes) > math.MaxInt32-1 {
		return ErrTooLarge
	}
	sum.Write(all[:])
	// Nodes in context.json stay in their place, before the others.
	slices.SortStableFunc(f.nodes, func(a, b node) int {
		if a.flags&inFile == 0 || b.flags&inFile == 0 {
			return int(a.flags&inFile) - int(b.flags&inFile)
		}
		return slices.Compare(a.key[:], b.key[:])
	})
	for i := range f.nodes {
		if n := &f.nodes[i]; n.flags&inFile != 0 && n.flags&canonical == 0 {
			f.files[int32(i)] = names[n.key]
		}
	}
	return nil
}

func (f *File) readNodeFile(name string) ([]byte, fs.FileInfo, error) {
	b, info, err := vfs.ReadStat(f.fs, f.name+"/"+PoolFolder+"/"+name, f.limit)
	if errors.Is(err, vfs.ErrTooLarge) {
		err = errors.Join(ErrTooLarge, err)
	}
	return b, info, err
}

func inFileNamed(name string, err error) error {
	return &fileError{name, err}
}

// fileError names the damaged file of a split context.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string { return e.name + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// stem is the name of a node's file without its suffix.
func (f *File) stem(i int32) string {
	if name, ok := f.files[i]; ok {
		return name
	}
	return uuid.UUID(f.nodes[i].key).String()
}
