module github.com/ctxdir/ctxdir/docs/site

go 1.26.0

require (
	github.com/alecthomas/chroma/v2 v2.23.1
	github.com/yuin/goldmark v1.8.2
	golang.org/x/net v0.62.0
)

require github.com/dlclark/regexp2 v1.11.5 // indirect
