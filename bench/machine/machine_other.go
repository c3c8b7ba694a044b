//go:build !linux

package machine

import "os"

func kernel() string { return "unknown" }

// FileSystem is not known here.
func FileSystem(string) string { return "unknown" }

// Spread does nothing: it is for ext4.
func Spread(string) error { return nil }

// Datasync is the nearest there is.
func Datasync(f *os.File) error { return f.Sync() }

// SyncAll does nothing: only Linux can flush one file system.
func SyncAll(string) error { return nil }

// Blocks is a file's size: what it takes on disk is not known here.
func Blocks(path string) (int64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// OnCores runs f on all cores: only Linux can bind a process.
func OnCores(_ int, f func() error) error { return f() }

func maxRSS() int64 { return 0 }
