package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/ctxdir/ctxdir/blob"
)

// attachment describes a block that is an image or a file. A reference stands for its payload.
func attachment(kind string, o members, block json.RawMessage) string {
	media := cmp.Or(o.text("media_type", "mimeType", "mime"), objectOf(o["source"]).text("media_type"))
	size := int64(-1)
	if refs, err := blob.Refs(block); err == nil {
		for _, ref := range refs {
			if ref.Problem == "" && ref.Encoding != "" {
				media, size = cmp.Or(media, ref.MediaType), ref.Size
				break
			}
		}
	}
	if size < 0 {
		size = inlineSize(o)
	}
	return attachmentLine(strings.TrimPrefix(strings.TrimSuffix(kind, "_url"), "input_"), media, o.text("filename", "name", "title"), size)
}

// attachmentLine is a line like "image image/png dot.png, 12 KiB". A negative size is unknown.
func attachmentLine(kind, media, name string, size int64) string {
	words := []string{kind}
	for _, w := range []string{media, name} {
		if w != "" {
			words = append(words, w)
		}
	}
	text := strings.Join(words, " ")
	if size >= 0 {
		text += ", " + humanSize(size)
	}
	return text
}

// inlineSize is the size in bytes of the base64 data in a block, -1 if there is none.
func inlineSize(o members) int64 {
	for _, in := range []members{o, objectOf(o["source"]), objectOf(o["image_url"]), objectOf(o["input_audio"]), objectOf(o["file"])} {
		text := in.text("data", "url", "image_url", "file_data")
		if _, rest, ok := strings.Cut(text, ";base64,"); ok {
			text = rest
		}
		if b, err := base64.StdEncoding.DecodeString(text); err == nil && text != "" {
			return int64(len(b))
		}
	}
	return -1
}

// payloadOf parses a reference to a payload.
func payloadOf(v json.RawMessage) (blob.Ref, bool) {
	refs, err := blob.Refs(v)
	if err != nil || len(refs) != 1 || refs[0].Path != "" || refs[0].Problem != "" {
		return blob.Ref{}, false
	}
	return refs[0], true
}
