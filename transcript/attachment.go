package transcript

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/dustin/go-humanize"
)

// attachment describes a block that is an image or a file. A reference stands for its payload.
func attachment(kind string, o Object, block json.RawMessage) Part {
	inner := ObjectOf(o["file"]) // of OpenAI's API
	file := &FileRef{
		Path:      cmp.Or(o.Text("filename", "name", "title", "path"), inner.Text("filename")),
		MediaType: cmp.Or(o.Text("media_type", "mimeType", "mime"), ObjectOf(o["source"]).Text("media_type")),
	}
	size := int64(-1)
	if refs, err := blob.Refs(block); err == nil {
		for _, ref := range refs {
			if ref.Problem == "" && ref.Encoding != "" {
				file.MediaType, file.Payload, size = cmp.Or(file.MediaType, ref.MediaType, mediaOf(ref.Prefix)), &ref, ref.Size
				break
			}
		}
	}
	if size < 0 {
		var media string
		file.Base64, media, size = inline(o)
		file.MediaType = cmp.Or(file.MediaType, media)
	}
	if n, err := strconv.ParseInt(string(o["size_bytes"]), 10, 64); size < 0 && err == nil && n >= 0 {
		size = n
	}
	name := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(kind, "_url"), "_asset_pointer"), "input_")
	return Part{Kind: Attachment, File: file, Text: attachmentLine(name, file.MediaType, file.Path, size)}
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
		text += ", " + humanize.IBytes(uint64(size))
	}
	return text
}

// HasText reports whether the media type is one of texts. An unknown type is none.
func (f *FileRef) HasText() bool {
	media, _, _ := strings.Cut(strings.ToLower(f.MediaType), ";")
	media = strings.TrimSpace(media)
	if strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") {
		return true
	}
	subtype := strings.TrimPrefix(strings.TrimPrefix(media, "application/"), "x-")
	return subtype != media && slices.Contains(textSubtypes, subtype)
}

// textSubtypes are texts below application/.
var textSubtypes = []string{
	"json", "jsonl", "ndjson", "xml", "yaml", "toml", "javascript", "ecmascript", "typescript", "sh", "shellscript", "csh", "perl", "php",
	"python", "ruby", "sql", "tex", "latex", "graphql", "httpd-php", "patch", "diff",
}

// inline returns the base64 data in a block, its media type if a data URL names it, and its size in bytes: -1 if there
// is not data.
func inline(o Object) (data, media string, size int64) {
	if source := ObjectOf(o["source"]); source.Text("type") == "text" { // a document of Anthropic's API
		text := source.Text("data")
		return base64.StdEncoding.EncodeToString([]byte(text)), "", int64(len(text))
	}
	for _, in := range []Object{o, ObjectOf(o["source"]), ObjectOf(o["image_url"]), ObjectOf(o["input_audio"]), ObjectOf(o["file"])} {
		text := in.Text("data", "url", "image_url", "file_data")
		media := ""
		if prefix, rest, ok := strings.Cut(text, ";base64,"); ok {
			media, text = mediaOf(prefix), rest
		}
		if b, err := base64.StdEncoding.DecodeString(text); err == nil && text != "" {
			return text, media, int64(len(b))
		}
	}
	return "", "", -1
}

// mediaOf is the media type of a data URL, "" if it names none.
func mediaOf(url string) string {
	media, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return ""
	}
	media, _, _ = strings.Cut(media, ";")
	return media
}

// payloadOf parses a reference to a payload.
func payloadOf(v json.RawMessage) (blob.Ref, bool) {
	refs, err := blob.Refs(v)
	if err != nil || len(refs) != 1 || refs[0].Path != "" || refs[0].Problem != "" {
		return blob.Ref{}, false
	}
	return refs[0], true
}
