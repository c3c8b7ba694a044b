package vfs

import (
	"io/fs"
	"os"
)

// SameFile reports whether two results of Lstat or Stat describe one file.
func SameFile(a, b fs.FileInfo) bool {
	if x, ok := a.Sys().(interface{ SameFile(any) bool }); ok {
		return x.SameFile(b.Sys())
	}
	if same, ok := sameNumber(a, b); ok {
		return same
	}
	return os.SameFile(a, b)
}

// Number returns the number of a file on its file system, or 0 if the system does not report it.
func Number(info fs.FileInfo) uint64 {
	n, _ := number(info)
	return n.ino
}

// sameNumber compares two files by their numbers, if the system reports them.
func sameNumber(a, b fs.FileInfo) (same, ok bool) {
	x, xok := number(a)
	y, yok := number(b)
	return x == y, xok && yok
}
