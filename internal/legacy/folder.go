package legacy

import (
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
	if err := f.scanPrompt(sum); err != nil {
		return err
	}
	pool := f.name + "/" + PoolFolder
	if info, err := f.fs.Lstat(pool); notThere(err) {
		return damaged("a split context without its messages: %s is missing", PoolFolder)
	} else if err == nil && !info.IsDir() {
		return damaged("a split context without its messages: %s is not a folder", PoolFolder)
	}
	var all digest
	for e, err := range f.fs.ReadDir(pool) {
		if err == nil && isNodeFile(e.Name()) {
			err = f.scanNodeFile(e, &all)
		}
		if err != nil {
			return err
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
	return nil
}

// scanPrompt reads the system prompt, if it has a file.
func (f *File) scanPrompt(sum hash.Hash) error {
	prompt, info, err := vfs.ReadStat(f.fs, f.name+"/"+PromptFile, f.limit)
	if notThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.Prompt, err = shallow(prompt); err != nil {
		return &fileError{PromptFile, err}
	}
	sum.Write([]byte(PromptFile))
	sum.Write(prompt)
	f.Size += int64(len(prompt))
	f.stamp.add("/"+PromptFile, info)
	return nil
}

// scanNodeFile notes the node in a file, and adds the file to the digest of all such files.
func (f *File) scanNodeFile(e fs.DirEntry, all *digest) error {
	name := PoolFolder + "/" + e.Name()
	if !e.Type().IsRegular() {
		return &fileError{name, damaged("it is a folder, a link or a device")}
	}
	b, info, err := f.readNodeFile(e.Name())
	if err == nil {
		_, err = compacted(b)
	}
	if err != nil {
		return &fileError{name, err}
	}
	f.stamp.add("/"+name, info)
	all.add(append([]byte(e.Name()+"\x00"), b...))
	stem := strings.TrimSuffix(e.Name(), nodeEnd)
	k, isID := keyOf(stem)
	n := node{key: k, size: uint32(len(b)), flags: inFile}
	if isID {
		n.flags |= canonical
	} else {
		f.files[k] = stem
	}
	f.nodes = append(f.nodes, n)
	f.Size += int64(len(b))
	if f.read != nil {
		f.read(f.Size)
	}
	if f.stop != nil {
		return f.stop()
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

// fileError names the damaged file of a split context.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string { return e.name + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// stem is the name of a node's file without its suffix.
func (f *File) stem(i int32) string {
	k := f.nodes[i].key
	if name, ok := f.files[k]; ok {
		return name
	}
	return uuid.UUID(k).String()
}
