package blob

import "bytes"

// binaryFloor is the least length, in bytes, of a binary text that is moved. A reference with a media type takes about
// half as much, and a file takes a block of the disk. So moving less would save nothing.
const binaryFloor = 256

// maxPrefix is the longest head of a data: URI that the search recognises, in bytes.
const maxPrefix = 256

// canonical finds the only encoding that yields exactly text for its payload, and appends the payload to room.
func canonical(room, text []byte) (payload []byte, e Encoding, ok bool) {
	// Reject line ends first: the decoder ignores them.
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
	// Strict requires the left-over bits to be zero; otherwise the same text could not come back.
	payload, err := e.codec().Strict().AppendDecode(room, text)
	return payload, e, err == nil
}

// uriPrefix returns the head of a base64 data: URI, comma included, and its media type, or nil for any other text.
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

// place classifies a string by the name of its member.
type place uint8

const (
	placeOther  place = iota
	placeBinary       // base64 if the object names a media type or an encoding
	placeCoded        // base64 if the object says so
	placeSure         // base64 in any case
)

// placeOf knows the common places of binary data: Anthropic source.data, OpenAI input_audio.data and b64_json,
// file_data, Gemini inlineData.data, MCP data and blob, Bedrock source.bytes, Ollama images, the AI SDK's image,
// LangChain's base64. Data URIs need no place. A wrong guess is harmless: only canonical base64 counts as base64, and
// that comes back identical.
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

// evidence collects what an object says about its binary data.
type evidence struct {
	media      bool // the object names a format or media type
	coded      bool // the object says base64
	start, end int  // the media type in its JSON spelling
}

// note examines a member whose value is the string body[start:end], without quotation marks.
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
