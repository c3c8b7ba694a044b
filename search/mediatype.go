package search

import (
	"path"
	"strings"
)

// mediaTypeOf returns the media type of a file: the one that the message states, or else the one of its name, empty if
// that says nothing. The table is its own: that of the system differs from machine to machine.
func mediaTypeOf(name, stated string) string {
	if stated, _, _ = strings.Cut(stated, ";"); stated != "" {
		return strings.ToLower(strings.TrimSpace(stated))
	}
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if is := mediaTypes[strings.ToLower(path.Ext(name))]; is != "" {
		return is
	}
	if is := mediaTypes[name]; is != "" {
		return is
	}
	return ""
}

// isTextType reports whether files of a media type are text.
func isTextType(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	switch media {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript",
		"application/x-sh", "application/sql", "application/x-ndjson", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
}

// mediaTypes are media types by extension, and by name.
var mediaTypes = func() map[string]string {
	all := map[string]string{
		".md": "text/markdown", ".html": "text/html", ".htm": "text/html", ".css": "text/css", ".csv": "text/csv", ".xml": "text/xml",
		".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml",
		".js": "text/javascript", ".mjs": "text/javascript", ".cjs": "text/javascript", ".svg": "image/svg+xml",
		".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".ico": "image/x-icon",
		".pdf": "application/pdf", ".zip": "application/zip", ".gz": "application/gzip", ".wasm": "application/wasm", ".mp3": "audio/mpeg",
		".wav": "audio/wav", ".mp4": "video/mp4", ".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf",
	}
	for _, name := range strings.Fields(`.txt .log .rst .adoc .tex .go .mod .sum .py .pyi .ts .tsx .jsx .vue .svelte .rs .c .h .cc .cpp .hpp
.cs .java .kt .kts .scala .swift .m .rb .php .pl .lua .r .jl .ex .exs .erl .hs .clj .lisp .el .zig .nim .d .dart .sql .graphql .proto
.sh .bash .zsh .fish .ps1 .bat .ini .cfg .conf .env .properties .lock .patch .diff .tf .gradle .cmake .mk .scss .sass .less .jsonl .ndjson
.jsonc .json5 .ipynb .txtar .tmpl .mdx .prisma .gitignore .dockerignore .editorconfig Makefile Dockerfile LICENSE README CHANGELOG
CODEOWNERS Gemfile Rakefile Procfile`) {
		if all[name] == "" {
			all[name] = "text/plain"
		}
	}
	return all
}()
