module github.com/ctxdir/ctxdir/docs/pictures

go 1.26.0

require (
	github.com/creack/pty v1.1.24
	github.com/leaanthony/go-ansi-parser v1.6.1
	github.com/rivo/uniseg v0.4.7
)
