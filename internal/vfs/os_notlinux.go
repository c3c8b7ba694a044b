//go:build !linux

package vfs

import "io/fs"

func (o *osFS) Lstat(name string) (fs.FileInfo, error) { return o.root.Lstat(name) }

func number(fs.FileInfo) (fileNumber, bool) { return fileNumber{}, false }
