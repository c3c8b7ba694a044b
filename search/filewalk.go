package search

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/go-json-experiment/json/jsontext"
)

// How a message touches a file.
const (
	Attached = "attached" // the message has its content
	Read     = "read"     // a tool reads it, or searches it
	Written  = "written"  // a tool writes, edits or removes it
)

// fileMention is a file that a message attaches, or that a tool reads or writes.
type fileMention struct {
	path      string
	access    string
	mediaType string
	size      int64 // of its content in the message, -1 if the message does not have it
	isText    bool
	pointer   string
	payload   string // SHA-256 of the payload that is its content
}

// Names of members that say what an object says about a file.
var (
	pathNames = nameSet("file_path filePath path file filename fileName notebook_path notebookPath relative_path target_file absolute_path " +
		"absolutePath")
	titleNames   = nameSet("title name displayName display_name file_name")
	mediaNames   = nameSet("media_type mediaType mime_type mimeType mime")
	dataNames    = nameSet("data file_data fileData url image_url image bytes blob base64 b64_json")
	contentNames = nameSet("content contents file_text new_source")
	writeNames   = nameSet("content contents file_text new_source new_string newString new_str newText new_text edits patch structuredPatch")
	readNames    = nameSet("numLines num_lines totalLines startLine")
	attachTypes  = nameSet("file input_file image input_image image_url document attachment audio input_audio video")
)

// pathEnds are the ends of pathNames and of commandNames in a text that is JSON.
var pathEnds = []string{`ath"`, `ile"`, `ilename"`, `ileName"`, `ommand"`, `cmd"`}

// hintsAtFile reports whether a member may say something about a file.
func hintsAtFile(name, value string) bool {
	return pathNames[name] || commandNames[name] || mediaNames[name] || dataNames[name] && strings.HasPrefix(value, "data:") ||
		value != "" && value[0] == '{' && slices.ContainsFunc(pathEnds, func(end string) bool { return strings.Contains(value, end) }) ||
		strings.Contains(value, patchMark)
}

// fileWalk finds the files of a message.
type fileWalk struct {
	refs     map[string]*ctxdir.Payload                // the message's payloads that are not text, by pointer
	payload  func(p *ctxdir.Payload) ([]byte, bool)    // reads a payload that may be text
	mentions []fileMention                             // in order, each once
	text     func(pointer, content string) (more bool) // receives the text of attached files; may be nil
	known    map[[3]string]int                         // mentions by path, access and content
}

// frame is an open object or array.
type frame struct {
	array   bool
	command bool   // a list of the words of a command
	name    string // of the last member
	pointer string // of a reference
	ref     *ctxdir.Payload
	kind    string // of a block, such as "image"
	path    string
	at      string // pointer to the path
	title   string
	media   string
	size    int64
	content int64
	writes  bool
	reads   bool
	data    []attached
	pending []fileMention // attachments whose name an outer object may have
}

// attached is a string that may be the content of a file.
type attached struct{ pointer, value string }

// walk reads a message, in which payloads that are not text are references.
func (w *fileWalk) walk(message []byte, outer string) error {
	d := jsontext.NewDecoder(bytes.NewReader(message), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	frames := []*frame{{array: true}}
	for {
		token, err := d.ReadToken()
		if err != nil || len(w.mentions) >= maxFiles {
			return err
		}
		top := frames[len(frames)-1]
		switch token.Kind() {
		case '{', '[':
			next := &frame{array: token.Kind() == '[', size: -1, content: -1}
			next.command = next.array && !top.array && commandNames[top.name]
			if writeNames[top.name] {
				top.writes = true
			}
			if !next.array {
				if ref := w.refAt(d, outer); ref != nil {
					next.ref, next.pointer = ref, outer+string(d.StackPointer())
				}
			}
			frames = append(frames, next)
		case '}', ']':
			frames = frames[:len(frames)-1]
			w.end(top, frames[len(frames)-1])
		case '"':
			if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 1 {
				top.name = token.String()
			} else if value := token.String(); top.ref == nil {
				w.string(top, value, func() string { return outer + string(d.StackPointer()) })
			}
		case '0':
			w.number(top, token)
		}
	}
}

func (w *fileWalk) refAt(d *jsontext.Decoder, outer string) *ctxdir.Payload {
	if len(w.refs) == 0 {
		return nil
	}
	return w.refs[outer+string(d.StackPointer())]
}

func (w *fileWalk) number(f *frame, token jsontext.Token) {
	switch name := f.name; {
	case name == "size" || name == "size_bytes" || name == "originalSize":
		if n, err := token.Float(); err == nil && n >= 0 && n < 1<<53 {
			f.size = int64(n)
		}
	case readNames[name]:
		f.reads = true
	}
}

// string notes the value of a member.
func (w *fileWalk) string(f *frame, value string, pointer func() string) {
	name := f.name
	if f.array {
		name = ""
	}
	if f.writes = f.writes || writeNames[name]; contentNames[name] {
		f.content = int64(len(value))
	}
	switch {
	case value == "":
		return
	case pathNames[name]:
		if isPath(value) && f.path == "" {
			f.path, f.at = value, pointer()
		}
	case titleNames[name]:
		if isPath(value) {
			f.title = value
		}
	case mediaNames[name] && len(value) < 128:
		f.media = value
	case name == "type" && f.kind == "":
		if f.kind = value; strings.Contains(value, "/") && len(value) < 128 {
			f.media = value
		}
	case dataNames[name]:
		f.data = append(f.data, attached{pointer(), value})
	}
	if value[0] == '{' { // the arguments of a call
		_ = w.walk([]byte(value), pointer())
	}
	if f.command || commandNames[name] {
		eachNamed(value, func(path string) {
			if len(w.mentions) < maxNamed {
				w.add(fileMention{path: path, access: named, size: -1, pointer: pointer()})
			}
		})
	}
	eachPatched(value, func(path string) {
		w.add(fileMention{path: path, access: Written, mediaType: mediaTypeOf(path, ""), size: -1, isText: true, pointer: pointer()})
	})
}

// end passes on the files of an object or array that ends.
func (w *fileWalk) end(f, outer *frame) {
	rows := f.pending
	if f.ref != nil {
		rows = append(rows, w.payloadFile(f))
	}
	for _, d := range f.data {
		if m, ok := w.inlineFile(f, d); ok {
			rows = append(rows, m)
		}
	}
	title := f.path
	if title == "" && (strings.Contains(f.title, ".") || f.media != "") {
		title = f.title
	}
	switch {
	case f.array:
	case len(rows) == 0 && f.path != "" && attachTypes[f.kind], len(rows) == 0 && f.media != "" && f.size >= 0 && title != "":
		rows = append(rows, fileMention{access: Attached, size: f.size, pointer: f.at, isText: isTextType(mediaTypeOf(title, f.media))})
	case len(rows) == 0 && f.path != "":
		m := fileMention{path: f.path, access: Read, size: f.content, pointer: f.at, mediaType: mediaTypeOf(f.path, "")}
		if f.writes && !f.reads {
			m.access = Written
		}
		m.isText = f.content >= 0 || f.writes || isTextType(m.mediaType)
		w.add(m)
	}
	for i := range rows {
		m := &rows[i]
		if m.path == "" {
			m.path = title
		}
		if m.mediaType == "" {
			m.mediaType = f.media
		}
		if f.array || outer.array {
			m.mediaType = mediaTypeOf(m.path, m.mediaType)
			w.add(*m)
		}
	}
	if !f.array && !outer.array {
		outer.pending = append(outer.pending, rows...)
	}
}

// payloadFile is the file whose content is a payload.
func (w *fileWalk) payloadFile(f *frame) fileMention {
	m := fileMention{access: Attached, mediaType: f.ref.MediaType, size: f.ref.Size, pointer: f.pointer, payload: f.ref.SHA256}
	if m.mediaType == "" || isTextType(m.mediaType) {
		if b, ok := w.payload(f.ref); ok {
			w.content(&m, b)
		}
	}
	return m
}

// inlineFile is the file whose content is a string: base64, or a text if the object says so.
func (w *fileWalk) inlineFile(f *frame, d attached) (m fileMention, ok bool) {
	value, media := d.value, f.media
	if uri, isURI := strings.CutPrefix(value, "data:"); isURI {
		head, rest, _ := strings.Cut(uri, ",")
		value, media = rest, strings.TrimSuffix(head, ";base64")
	} else if media == "" {
		return m, false
	}
	m = fileMention{access: Attached, mediaType: media, pointer: d.pointer}
	b, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		if !isTextType(media) {
			return m, false
		}
		m.size, m.isText = int64(len(value)), true // the walk of texts has it
		return m, true
	}
	m.size = int64(len(b))
	if isTextType(media) {
		w.content(&m, b)
	}
	return m, true
}

// content passes on the content of a file if it is text.
func (w *fileWalk) content(m *fileMention, b []byte) {
	if m.isText = len(b) > 0 && utf8.Valid(b) && bytes.IndexByte(b, 0) < 0; m.isText && w.text != nil {
		w.text(m.pointer, string(b))
	}
}

// add adds a file once.
func (w *fileWalk) add(m fileMention) {
	if len(m.path) > maxPath || len(w.mentions) >= maxFiles {
		return
	}
	key := [3]string{m.path, m.access, m.payload}
	if m.path == "" && m.payload == "" {
		key[2] = m.pointer
	}
	if i, ok := w.known[key]; ok {
		if w.mentions[i].size < 0 {
			w.mentions[i].size = m.size
		}
		return
	}
	if w.known == nil {
		w.known = map[[3]string]int{}
	}
	w.known[key] = len(w.mentions)
	w.mentions = append(w.mentions, m)
}

// patched are the beginnings of the lines that name files in a patch of Codex.
var patched = []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "}

const patchMark = "*** "

// eachPatched yields the paths in a patch of Codex.
func eachPatched(value string, yield func(path string)) {
	for at := strings.Index(value, patchMark); at >= 0; {
		line, _, _ := strings.Cut(value[at:], "\n")
		for _, begin := range patched {
			if path, ok := strings.CutPrefix(line, begin); ok && path != "" && isPath(path) {
				yield(path)
			}
		}
		next := strings.Index(value[at+len(line):], patchMark)
		if next < 0 {
			return
		}
		at += len(line) + next
	}
}
