package archive

import "github.com/ctxdir/ctxdir/internal/vfs"

func Salvage(fsys vfs.FS, name string) (*Pack, error) { return Open(fsys, name) }
