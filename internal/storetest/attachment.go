package storetest

import (
	"io"
	"strings"

	"github.com/ctxdir/ctxdir/internal/engine"
)

func Attachment(at, content string) engine.Attachment {
	return engine.Attachment{At: at, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}
