package blob

import (
	"bytes"
	"encoding/base64"
)

// binaryFloor is the least text, in bytes, that is moved because it is binary. A reference with a media type takes about
// half as much, and a file a block of the disk: moving less would save nothing.
const binaryFloor = 256

// maxPrefix is the longest head of a data: URI that is looked for, in bytes.
const maxPrefix = 256

func (e Encoding) codec() *base64.Encoding {
	switch e {
	case Base64:
		return base64.StdEncoding
	case Base64Unpadded:
		return base64.RawStdEncoding
	case Base64URL:
		return base64.URLEncoding
	case Base64URLUnpadded:
		return base64.RawURLEncoding
	}
	return nil
}

// canonical finds the encoding whose text is text and no other for its payload, and appends the payload to room.
func canonical(room, text []byte) (payload []byte, e Encoding, ok bool) {
	// The decoder passes over line ends, so they are looked for first.
	if bytes.ContainsAny(text, "\r\n") {
		return nil, "", false
	}
	padded := len(text)%4 == 0
	switch url := bytes.ContainsAny(text, "-_"); {
	case url && padded:
		e = Base64URL
	case url:
		e = Base64URLUnpadded
	case padded:
		e = Base64
	default:
		e = Base64Unpadded
	}
	// Strict: the bits left over must be zero, else the same text does not come back.
	payload, err := e.codec().Strict().AppendDecode(room, text)
	return payload, e, err == nil
}

// uriPrefix returns the head of a data: URI in base64, comma included, and its media type; nil where text is none.
func uriPrefix(text []byte) (prefix, mediaType []byte) {
	if !looksLikeURI(text) {
		return nil, nil
	}
	comma := bytes.IndexByte(text[:min(len(text), maxPrefix)], ',')
	if comma < 0 {
		return nil, nil
	}
	prefix = text[:comma+1]
	const mark = ";base64,"
	if len(prefix) < len(mark) || !bytes.EqualFold(prefix[len(prefix)-len(mark):], []byte(mark)) {
		return nil, nil
	}
	mediaType, _, _ = bytes.Cut(prefix[len("data:"):comma], []byte(";"))
	return prefix, mediaType
}

func looksLikeURI(text []byte) bool {
	return len(text) > len("data:") && bytes.EqualFold(text[:len("data:")], []byte("data:"))
}

// place says what a string's name tells about it.
type place uint8

const (
	placeOther  place = iota
	placeBinary       // base64, where the object says a media type or an encoding
	placeCoded        // base64, where the object says that it is
	placeSure         // base64 in any case
)

// placeOf knows where binary data sits: Anthropic source.data, OpenAI input_audio.data and b64_json, file_data,
// Gemini inlineData.data, MCP data and blob, Bedrock source.bytes, Ollama images, the AI SDK's image, LangChain's base64.
// Data URIs need no place. A wrong guess costs nothing: what is no canonical base64 is not taken for it, and what is
// comes back the same.
func placeOf(name []byte) place {
	switch string(name) {
	case "data", "file_data", "fileData", "image", "bytes", "blob", "base64", "result":
		return placeBinary
	case "content":
		return placeCoded
	case "b64_json", "images":
		return placeSure
	}
	return placeOther
}

// evidence is what an object says about the binary data in it.
type evidence struct {
	media      bool // a format or media type is given
	coded      bool // it says base64
	start, end int  // the media type, as it is spelled
}

// note looks at a member whose value is the string at [start, end) of body, without quotation marks.
func (e *evidence) note(name, body []byte, start, end int) {
	switch string(name) {
	case "media_type", "mediaType", "mime_type", "mimeType", "mime":
		e.media = true
		if e.end == 0 && end-start <= 127 {
			e.start, e.end = start, end
		}
	case "format", "output_format", "transcript":
		e.media = true
	case "type", "encoding", "source_type":
		if string(body[start:end]) == "base64" {
			e.coded = true
		}
	}
}

// proves reports whether a string in that place is binary.
func (e *evidence) proves(p place) bool {
	switch p {
	case placeBinary:
		return e.media || e.coded
	case placeCoded:
		return e.coded
	}
	return p == placeSure
}
