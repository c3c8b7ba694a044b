package api

import (
	"encoding/base64"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/transcript"
)

type fileOfPart struct {
	Path      string `json:"path,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	SHA256    string `json:"sha256,omitempty"` // of a payload
	Bytes     *int64 `json:"bytes"`            // null if the message does not have the content
	Width     int    `json:"width,omitempty"`  // of an image, in pixels
	Height    int    `json:"height,omitempty"`
}

// fileOf describes the content of an attachment of a message.
func fileOf(m *ctxdir.Message, f *transcript.FileRef) *fileOfPart {
	if f == nil {
		return nil
	}
	is := &fileOfPart{Path: f.Path, MediaType: f.MediaType}
	switch {
	case f.Payload != nil:
		is.SHA256, is.Bytes = f.Payload.Sum.String(), &f.Payload.Size
		if r := openPayload(m, is.SHA256); r != nil {
			is.measure(r)
			_ = r.Close()
		}
	case f.Base64 != "":
		n := int64(base64.StdEncoding.DecodedLen(len(f.Base64)) - strings.Count(f.Base64[max(len(f.Base64)-2, 0):], "="))
		is.Bytes = &n
		is.measure(base64.NewDecoder(base64.StdEncoding, strings.NewReader(f.Base64)))
	}
	return is
}

// openPayload opens a payload of a message, nil if it cannot be read.
func openPayload(m *ctxdir.Message, sum string) io.ReadCloser {
	all, err := m.Payloads()
	if err != nil {
		return nil
	}
	for _, p := range all {
		if p.SHA256 == sum && p.Problem == "" {
			r, _, err := m.Open(p)
			if err != nil {
				return nil
			}
			return r
		}
	}
	return nil
}

// measure reads the size of an image from its header.
func (f *fileOfPart) measure(r io.Reader) {
	if !strings.HasPrefix(f.MediaType, "image/") {
		return
	}
	if is, _, err := image.DecodeConfig(io.LimitReader(r, 1<<20)); err == nil {
		f.Width, f.Height = is.Width, is.Height
	}
}
