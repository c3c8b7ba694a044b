//go:build !linux

package place

import (
	"os"
	"runtime"
)

// Look gathers what the system tells of a folder: here nothing but which system it is.
func Look(dir string) (Facts, error) {
	_, err := os.Stat(dir)
	return Facts{System: runtime.GOOS}, err
}

// Holders finds who holds the locks in a folder. It is not told here.
func Holders(string, string) ([]Holder, error) { return nil, nil }

// Apart finds the folders in one that are on another file system. It is not told here.
func Apart(string) ([]string, error) { return nil, nil }
