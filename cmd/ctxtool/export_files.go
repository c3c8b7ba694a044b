package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/export"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/redact"
)

// fileExport writes a file of package export.
type fileExport struct{ x *export.Writer }

func fileExporter(format export.Format) func(w io.Writer, read reading) (exporter, error) {
	return func(w io.Writer, read reading) (exporter, error) {
		o := export.Options{Format: format, All: read.all, Tools: read.tools}
		if read.redact {
			o.Redact = &redact.Options{Kinds: redact.Kinds, Words: read.words}
			o.Found = func(_ *ctxdir.Message, _ string, f redact.Finding) { read.found[f.Kind]++ }
		}
		x, err := export.NewWriter(w, o)
		if errors.Is(err, redact.ErrOptions) {
			return nil, badArgument("", "--redact-word: want at most %d words of at most %d bytes", redact.MaxWords, redact.MaxWord)
		}
		return &fileExport{x}, err
	}
}

func (e *fileExport) begin(c *ctxdir.Metadata, branch string) error { return e.x.Begin(c, branch) }
func (e *fileExport) end() error                                    { return e.x.End() }
func (e *fileExport) omitted() omissions                            { return omissions{} }

func (e *fileExport) message(ctx context.Context, m *record.Loaded) (err error) {
	m.Missing, err = e.x.Message(ctx, m.Message)
	return err
}

// kindNames are the nouns for what is replaced.
var kindNames = map[redact.Kind]string{
	redact.Key: "key", redact.Token: "token", redact.Mail: "mail address", redact.Path: "home folder", redact.Host: "private host",
	redact.Base64: "long base64 text", redact.Word: "word",
}

// replaced counts what was replaced, by kind.
func replaced(found map[redact.Kind]int) string {
	var parts []string
	for _, k := range redact.Kinds {
		if n := found[k]; n > 0 {
			parts = append(parts, term.Count(n, kindNames[k]))
		}
	}
	if parts == nil {
		return "nothing: no pattern found a secret"
	}
	return strings.Join(parts, ", ")
}
