//go:build !linux

package place

import (
	"os"
	"runtime"
)

// Look gathers the system's facts about a folder: here only the system's name.
func Look(dir string) (Facts, error) {
	_, err := os.Stat(dir)
	return Facts{System: runtime.GOOS}, err
}

// Holders finds the holders of the locks in a folder. This system does not report them.
func Holders(string, string) ([]Holder, error) { return nil, nil }

// Apart finds the subfolders on another file system. This system does not report them.
func Apart(string) ([]string, error) { return nil, nil }
