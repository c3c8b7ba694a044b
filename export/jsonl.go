package export

import (
	"context"
	"io"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
)

// line writes a message in JSON Lines. Without redaction it is verbatim, and a large one is read piece by piece.
func (x *writer) line(ctx context.Context, m *ctxdir.Message) (missing, err error) {
	if m.Unavailable != nil {
		return nil, nil
	}
	if x.redactor != nil {
		return x.redactedLine(ctx, m)
	}
	l, err := record.Load(ctx, m, record.Full)
	if err != nil {
		return nil, err
	}
	if err := l.WriteBody(ctx, x.w); err != nil {
		return l.Missing, err
	}
	_, err = io.WriteString(x.w, "\n")
	return l.Missing, err
}

// redactedLine writes a message in which findings are replaced. Binary payloads stay references.
func (x *writer) redactedLine(ctx context.Context, m *ctxdir.Message) (missing, err error) {
	x.at = m
	l, err := record.Load(ctx, m, record.Texts)
	if err != nil {
		return nil, err
	}
	body := l.Body
	if len(body) == 0 {
		body = m.Stored
	}
	_, err = io.WriteString(x.w, x.redactor.JSON(body).String()+"\n")
	return l.Missing, err
}
