// Package view shows the files in messages as a model provider takes them: the text of a text file between tags, and a
// line with type, name and size for every other file.
package view

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/transcript"
)

// MaxText is the size, in bytes, up to which [File] shows the text of a file.
const MaxText = 1 << 20

// File is an attachment for a provider: <file path="notes.txt">its text</file>, or [file application/pdf plan.pdf,
// 12 KiB] for a file that is binary, larger than [MaxText], or not readable. An end tag in the text is escaped, so that
// the text cannot end before its file does.
func File(m *ctxdir.Message, p *transcript.Part) string {
	placeholder := "[" + p.Text + "]"
	if p.File == nil || !p.File.HasText() {
		return placeholder
	}
	text, err := Content(m, p.File, MaxText)
	if err != nil || !utf8.Valid(text) || strings.ContainsRune(string(text), 0) {
		return placeholder
	}
	return `<file path="` + html.EscapeString(p.File.Path) + `">` + strings.ReplaceAll(string(text), "</file", `<\/file`) + "</file>"
}

// errNoContent reports an attachment whose content the message does not have: a URL, for example.
var errNoContent = errors.New("the message lacks the content")

// Content reads the content of an attachment of a message. It fails with [ctxdir.ErrTooLarge] above limit bytes.
func Content(m *ctxdir.Message, f *transcript.FileRef, limit int64) ([]byte, error) {
	if f.Payload == nil {
		switch {
		case f.Base64 == "":
			return nil, errNoContent
		case int64(base64.StdEncoding.DecodedLen(len(f.Base64)))-2 > limit:
			return nil, tooLarge(limit)
		}
		b, err := base64.StdEncoding.DecodeString(f.Base64)
		if err == nil && int64(len(b)) > limit {
			err = tooLarge(limit)
		}
		return b, err
	}
	refs, err := m.Payloads()
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if ref.SHA256 == f.Payload.Sum.String() && ref.Problem == "" {
			return read(m, ref, limit)
		}
	}
	return nil, errNoContent
}

// Base64 is the content of an attachment in base64, "" if it cannot be read.
func Base64(m *ctxdir.Message, f *transcript.FileRef, limit int64) string {
	if f.Payload == nil {
		return strings.NewReplacer("\r", "", "\n", "").Replace(f.Base64)
	}
	b, err := Content(m, f, limit)
	if err != nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(b)
}

// read reads a payload, of which a damaged reference may give a wrong size.
func read(m *ctxdir.Message, ref ctxdir.Payload, limit int64) ([]byte, error) {
	r, size, err := m.Open(ref)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, errors.Join(tooLarge(limit), r.Close())
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err = errors.Join(err, r.Close()); err == nil && int64(len(b)) > limit {
		err = tooLarge(limit)
	}
	return b, err
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: a file exceeds the limit of %d bytes", ctxdir.ErrTooLarge, limit)
}
