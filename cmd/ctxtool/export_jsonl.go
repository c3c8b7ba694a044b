package main

import (
	"context"
	"io"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
)

// jsonlExport writes each message verbatim, one per line.
type jsonlExport struct{ w io.Writer }

func (e *jsonlExport) begin(*ctxdir.Metadata, string) error { return nil }
func (e *jsonlExport) end() error                           { return nil }
func (e *jsonlExport) omitted() omissions                   { return omissions{} }

func (e *jsonlExport) message(ctx context.Context, m *record.Loaded) error {
	if m.Unavailable != nil {
		return nil
	}
	if err := m.WriteBody(ctx, e.w); err != nil {
		return err
	}
	_, err := io.WriteString(e.w, "\n")
	return err
}
