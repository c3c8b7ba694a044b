package legacy

import (
	"crypto/sha256"
	"math"
	"os"
	"path"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Options configure Open.
type Options struct {
	Limit    int64            // size limit of a node, in bytes; 0 means 256 MiB
	Progress func(read int64) // receives the number of bytes read; may be nil
	Stop     func() error     // called now and then; its error ends Open. May be nil
}

// Open reads a legacy context to its end, but keeps no nodes in memory. It fails with [ErrNotLegacy], [ErrDamaged],
// [ErrTooLarge], or an error of the file system.
func Open(fsys vfs.FS, name string, o Options) (*File, error) {
	format, err := Detect(fsys, name)
	if err != nil {
		return nil, err
	}
	f := &File{Format: format, fs: fsys, name: name, limit: o.Limit, read: o.Progress, stop: o.Stop, branchesAt: -1, files: map[key]string{}}
	if f.limit <= 0 {
		f.limit = 256 << 20
	}
	f.limit = min(f.limit, math.MaxUint32-1<<20)
	sum := sha256.New()
	at := name
	switch format {
	case Monolithic:
	case Split:
		at += "/" + ContextFile
	default:
		return nil, ErrNotLegacy
	}
	if info, lerr := fsys.Lstat(at); format == Split && (notThere(lerr) || lerr == nil && !info.Mode().IsRegular()) {
		return nil, damaged("a split context without its %s", ContextFile)
	}
	if f.file, err = fsys.OpenFile(at, os.O_RDONLY); err == nil {
		err = f.scan(at[len(name):], sum)
	}
	switch {
	case err != nil:
	case format == Split:
		err = f.scanFolder(sum)
	case !f.pool:
		err = damaged("it has no object %q", NamePool)
	case len(f.nodes) == 0 && path.Base(name) == ContextFile:
		err = damaged("a split context without its messages")
	}
	if err == nil {
		f.sortNodes()
		err = f.scanBranches()
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	sum.Sum(f.Digest[:0])
	return f, nil
}
