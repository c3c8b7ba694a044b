// Package web has the page that "ctxtool serve" shows. Its source is TypeScript in src, built by build.mjs into dist.
//
// It serves package api and the command, and promises nothing to other modules.
package web

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Files are the built page: index.html, and what it loads from /assets/.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is valid
	}
	return files
}
