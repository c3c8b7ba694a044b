package engine

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

var wholeEngine = &Engine{
	Name: Whole,
	About: "one JSON document per conversation, rewritten whole by each append: temporary file, fsync, rename, fsync of the folder. " +
		"The handle keeps the encoded messages, so an append only writes them",
	Largest: 100_000,
	Alone:   "two writers would overwrite each other's messages",
	Open: func(dir string, d Durability) (Store, error) {
		return wholeStore{dir, d}, os.MkdirAll(dir, 0o700)
	},
}

// document is the file of a conversation. A branch is a whole copy.
type document struct {
	ID       string           `json:"id"`
	Title    string           `json:"title"`
	Messages []jsontext.Value `json:"messages"`
}

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

type wholeStore struct {
	dir string
	d   Durability
}

func documentName(id, branch string) string {
	if branch == Main {
		return id + ".json"
	}
	return id + "." + branch + ".json"
}

func readDocument(path string) (document, error) {
	var doc document
	b, err := os.ReadFile(path)
	if err != nil {
		return doc, err
	}
	return doc, json.Unmarshal(b, &doc, lenient)
}

func writeDocument(dir, name string, doc document, d Durability) error {
	return replaceFile(dir, name, d, func(w io.Writer) error {
		head, err := json.Marshal(document{ID: doc.ID, Title: doc.Title})
		if err != nil {
			return err
		}
		buf := bufio.NewWriterSize(w, 1<<20)
		_, _ = buf.Write(head[:len(head)-2]) // up to the bracket; a bufio.Writer keeps its first error for Flush
		for i, m := range doc.Messages {
			if i > 0 {
				_, _ = buf.WriteString(",\n")
			}
			_, _ = buf.Write(m)
		}
		_, _ = buf.WriteString("]}\n")
		return buf.Flush()
	})
}

func (s wholeStore) Create(title string) (string, error) {
	id := uuid.NewString()
	return id, writeDocument(s.dir, documentName(id, Main), document{ID: id, Title: title}, s.d)
}

func (s wholeStore) Context(id, branch string) (Context, error) {
	c := &wholeContext{dir: s.dir, id: id, branch: branch, d: s.d}
	var err error
	c.doc, err = readDocument(filepath.Join(s.dir, documentName(id, branch)))
	return c, err
}

func (s wholeStore) List() ([]Summary, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Summary
	for _, p := range paths {
		doc, err := readDocument(p)
		if err != nil {
			return nil, err
		}
		info := infoOf(doc, "")
		out = append(out, Summary{ID: doc.ID, Title: doc.Title, Messages: info.Messages, Bytes: info.Bytes})
	}
	return out, nil
}

func (s wholeStore) Close() error { return nil }

func infoOf(doc document, name string) BranchInfo {
	info := BranchInfo{Name: name, Messages: int64(len(doc.Messages))}
	for _, m := range doc.Messages {
		info.Bytes += int64(len(m))
	}
	return info
}

type wholeContext struct {
	dir, id, branch string
	d               Durability
	doc             document
}

func (c *wholeContext) Branches() ([]BranchInfo, error) {
	return []BranchInfo{infoOf(c.doc, c.branch)}, nil
}

func (c *wholeContext) Append(m Message) error { return c.AppendBatch([]Message{m}) }

func (c *wholeContext) AppendBatch(ms []Message) error {
	for _, m := range ms {
		c.doc.Messages = append(c.doc.Messages, appendLine(nil, m))
	}
	return writeDocument(c.dir, documentName(c.id, c.branch), c.doc, c.d)
}

// Build writes the document once.
func (c *wholeContext) Build(n int64, message func(i int64) Message) error {
	ms := make([]Message, n)
	for i := range ms {
		ms[i] = message(int64(i))
	}
	return c.AppendBatch(ms)
}

func (c *wholeContext) stored(i int) (Stored, error) {
	return parseLine(slices.Clone(c.doc.Messages[i]), int64(i))
}

func (c *wholeContext) Last(n int) ([]Stored, error) {
	total := int64(len(c.doc.Messages))
	return c.Range(max(total-int64(n), 0), total)
}

func (c *wholeContext) Range(from, to int64) ([]Stored, error) {
	var out []Stored
	for i := from; i < min(to, int64(len(c.doc.Messages))); i++ {
		m, err := c.stored(int(i))
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (c *wholeContext) All(f func(Stored) error) error {
	for i := range c.doc.Messages {
		m, err := c.stored(i)
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *wholeContext) ByID(id uuid.UUID) (Stored, error) {
	want := lineStart + id.String()
	for i, m := range c.doc.Messages {
		if len(m) > len(want) && string(m[:len(want)]) == want {
			return c.stored(i)
		}
	}
	return Stored{}, errNotFound
}

func (c *wholeContext) Fork(name string, at int64) error {
	doc := c.doc
	doc.Messages = doc.Messages[:at]
	return writeDocument(c.dir, documentName(c.id, name), doc, c.d)
}

func (c *wholeContext) Settle() error { return nil }
func (c *wholeContext) Close() error  { return nil }
