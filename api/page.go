package api

import (
	"io/fs"
	"mime"
	"net/http"
	"path"
)

// screens are the paths of the page other than /: it reads its address itself.
var screens = []string{"/c/{context}", "/c/{context}/{view...}", "/search", "/files", "/usage", "/health"}

// servePage serves the files of a page: index.html for each of its screens, and the others below /assets/. Their names
// have the hash of their content.
func (x *Server) servePage(files fs.FS) error {
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return err
	}
	show := func(w http.ResponseWriter, _ *http.Request) {
		_ = sendPage(w, "text/html; charset=utf-8", string(index))
	}
	for _, screen := range screens {
		x.mux.HandleFunc("GET "+screen, show)
	}
	x.front = show
	x.mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		b, err := fs.ReadFile(files, name)
		if err != nil || name == "index.html" {
			problem(codeNotFound, "file not found").write(w)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = sendPage(w, mime.TypeByExtension(path.Ext(name)), string(b))
		})).ServeHTTP(w, r)
	})
	return nil
}
