package storetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Upper gives files and folders names in upper case, as some file systems and copying programs do.
func (p *Patient) Upper(paths ...string) {
	p.T.Helper()
	for _, path := range paths {
		p.Rename(path, strings.ToUpper(filepath.Base(path)))
	}
}

// Rename gives a file or folder another name.
func (p *Patient) Rename(path, name string) {
	p.T.Helper()
	if to := filepath.Join(filepath.Dir(path), name); to != path {
		Check(p.T, os.Rename(path, to))
	}
}

// UpperAll is Upper for everything below a folder.
func (p *Patient) UpperAll(dir string) {
	p.T.Helper()
	var all []string
	Check(p.T, filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if path != dir {
			all = append(all, path)
		}
		return err
	}))
	slices.Reverse(all)
	p.Upper(all...)
}
