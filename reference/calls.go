package reference

import (
	"encoding/json"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBody  = 64 << 20 // bytes of a message in which calls are looked for
	maxDepth = 32       // of an object with a call
)

// pathNames are the members of calls and results that name a file, the best first.
var pathNames = []string{
	"relativePath", "relative_path", "file_path", "filePath", "path", "notebook_path", "notebookPath", "absolute_path", "absolutePath",
	"target_file", "filename", "fileName", "file",
}

// searchNames are the members of calls that search files: their path is a place, not what they found.
var searchNames = []string{"pattern", "regex", "glob"}

// inCalls returns the references that the tool calls and results in a message imply. The tools of all frameworks are
// read alike: an object that names a file is a reference, with the lines and the text that stand beside the name.
func inCalls(body json.RawMessage, folders []string) []Ref {
	if len(body) > maxBody {
		return nil
	}
	c := collector{places: newPlaces(body, folders), at: map[place]int{}}
	c.walk(jsontext.Value(body), 0)
	return c.refs
}

type place struct {
	file  string
	lines Lines
}

// collector collects the references of one message.
type collector struct {
	places places
	refs   []Ref
	at     map[place]int // of a reference in refs
}

func (c *collector) walk(v jsontext.Value, depth int) {
	if depth > maxDepth || len(c.refs) == MaxRefs {
		return
	}
	switch v.Kind() {
	case '{':
		o, inside := transcript.Object{}, []jsontext.Value{}
		err := message.Members(v, func(key string, v jsontext.Value) error {
			o[key], inside = json.RawMessage(v), append(inside, v)
			return nil
		})
		if err != nil {
			return
		}
		c.object(o)
		for _, v := range inside {
			c.walk(v, depth+1)
		}
	case '[':
		_ = message.Elements(v, func(v jsontext.Value) error {
			c.walk(v, depth+1)
			return nil
		})
	case '"':
		c.text(v, depth)
	}
}

// text reads a string: the arguments of a call may be JSON in it, or a patch.
func (c *collector) text(v jsontext.Value, depth int) {
	var s string
	if len(v) < 8 || v[1] != '{' && !strings.Contains(string(v), "*** Begin Patch") || json.Unmarshal(v, &s) != nil {
		return
	}
	if s[0] == '{' {
		c.walk(jsontext.Value(s), depth+1)
		return
	}
	for line := range strings.Lines(s) {
		for _, mark := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				c.add(c.places.file(name), Lines{}, "")
			}
		}
	}
}

// object reads an object that may name a file.
func (c *collector) object(o transcript.Object) {
	file := c.places.file(o.Text(pathNames...))
	if file == "" || o.Text(searchNames...) != "" {
		return
	}
	if hunks := transcript.List(o["structuredPatch"]); len(hunks) > 0 {
		for _, h := range hunks {
			text := patched(transcript.ObjectOf(h))
			c.add(file, from(number(transcript.ObjectOf(h), "newStart"), text), text)
		}
		return
	}
	text := o.Text("content", "after")
	switch start := number(o, "startLine", "start_line"); {
	case text != "" && start > 0:
		c.add(file, from(start, text), text)
	case text != "":
		c.add(file, Lines{}, text)
	default:
		c.add(file, linesOf(o), "")
	}
}

// from returns the lines that a text has if it begins with a line.
func from(start int64, text string) Lines {
	if start < 1 || text == "" {
		return Lines{}
	}
	return Lines{start, start + int64(strings.Count(strings.TrimSuffix(text, "\n"), "\n"))}
}

// patched returns the lines that a hunk leaves.
func patched(hunk transcript.Object) string {
	var b strings.Builder
	for _, v := range transcript.List(hunk["lines"]) {
		var line string
		if json.Unmarshal(v, &line) == nil && line != "" && (line[0] == ' ' || line[0] == '+') {
			b.WriteString(line[1:] + "\n")
		}
	}
	return b.String()
}

// linesOf returns the lines that a call asks for, zero if it does not say.
func linesOf(o transcript.Object) (l Lines) {
	var ends []int64
	switch start, end := number(o, "start_line", "startLine"), number(o, "end_line", "endLine"); {
	case json.Unmarshal(o["view_range"], &ends) == nil && len(ends) == 2:
		l = Lines{ends[0], ends[1]}
	case start > 0:
		l = Lines{start, end}
	case number(o, "limit") > 0:
		begin := max(number(o, "offset"), 1)
		l = Lines{begin, begin + number(o, "limit") - 1}
	case number(o, "line_number") > 0:
		l = Lines{number(o, "line_number"), number(o, "line_number")}
	}
	if l.From < 1 || l.To < l.From {
		return Lines{}
	}
	return l
}

// number returns the first of some members that is a whole number of a possible size, else 0.
func number(o transcript.Object, names ...string) int64 {
	const most = 1 << 40
	for _, name := range names {
		var n int64
		if o[name] != nil && json.Unmarshal(o[name], &n) == nil && n > 0 && n < most {
			return n
		}
	}
	return 0
}

// add adds a reference. The text of the lines is "" if it is not known.
func (c *collector) add(file string, l Lines, text string) {
	if file == "" || len(c.refs) == MaxRefs {
		return
	}
	r := Ref{File: file, Lines: l, Computed: true}
	if text != "" {
		r.Sum, r.Size, r.Context = Sum(text), int64(len(unified(text))), excerpt(text)
		if l.IsZero() {
			r.Blob = blobOf(text, 0)
		}
	}
	switch i, known := c.at[place{file, l}]; {
	case known && text != "":
		c.refs[i] = r // what the tool did last
	case !known:
		c.at[place{file, l}] = len(c.refs)
		c.refs = append(c.refs, r)
	}
}
