package engine

import (
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

var perFileEngine = &Engine{
	Name: PerFile,
	About: "opencode style: a file per message, written and fsynced, and an index of the conversation (ids and sizes in " +
		"order). Each append rewrites the whole index: temporary file, fsync, rename, fsync of the folder",
	Largest: 100_000,
	Alone:   "two writers would overwrite each other's index",
	Open: func(dir string, d Durability) (Store, error) {
		return perFileStore{dir, d}, os.MkdirAll(dir, 0o700)
	},
}

// listing is the index of a conversation.
type listing struct {
	ID       string         `json:"id"`
	Title    string         `json:"title"`
	Messages []listingEntry `json:"messages"`
}

type listingEntry struct {
	ID   uuid.UUID `json:"id"`
	Size int64     `json:"size"`
}

type perFileStore struct {
	dir string
	d   Durability
}

func (s perFileStore) write(x *listing, branch string) error {
	return replaceFile(filepath.Join(s.dir, x.ID), "index-"+branch+".json", s.d, func(w io.Writer) error {
		return json.MarshalWrite(w, x)
	})
}

func (s perFileStore) read(id, branch string) (listing, error) {
	var x listing
	b, err := os.ReadFile(filepath.Join(s.dir, id, "index-"+branch+".json"))
	if err != nil {
		return x, err
	}
	return x, json.Unmarshal(b, &x)
}

func (s perFileStore) Create(title string) (string, error) {
	x := listing{ID: uuid.NewString(), Title: title}
	if err := os.MkdirAll(filepath.Join(s.dir, x.ID, "messages"), 0o700); err != nil {
		return "", err
	}
	return x.ID, s.write(&x, Main)
}

func (s perFileStore) Context(id, branch string) (Context, error) {
	x, err := s.read(id, branch)
	if err != nil {
		return nil, err
	}
	return &perFileContext{s: s, branch: branch, index: x}, nil
}

func (s perFileStore) List() ([]Summary, error) {
	dirs, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []Summary
	for _, d := range dirs {
		x, err := s.read(d.Name(), Main)
		if err != nil {
			return nil, err
		}
		info := x.info("")
		out = append(out, Summary{ID: x.ID, Title: x.Title, Messages: info.Messages, Bytes: info.Bytes})
	}
	return out, nil
}

func (s perFileStore) Close() error { return nil }

func (x *listing) info(name string) BranchInfo {
	info := BranchInfo{Name: name, Messages: int64(len(x.Messages))}
	for _, e := range x.Messages {
		info.Bytes += e.Size
	}
	return info
}

type perFileContext struct {
	s      perFileStore
	branch string
	index  listing
}

func (c *perFileContext) path(id uuid.UUID) string {
	return filepath.Join(c.s.dir, c.index.ID, "messages", id.String()+".json")
}

func (c *perFileContext) Branches() ([]BranchInfo, error) {
	return []BranchInfo{c.index.info(c.branch)}, nil
}

func (c *perFileContext) add(m Message) error {
	f, err := os.OpenFile(c.path(m.ID), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(appendLine(nil, m), '\n'))
	if err == nil && c.s.d == Full {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	c.index.Messages = append(c.index.Messages, listingEntry{m.ID, int64(len(m.Body))})
	return err
}

func (c *perFileContext) Append(m Message) error { return c.AppendBatch([]Message{m}) }

func (c *perFileContext) AppendBatch(ms []Message) error {
	for _, m := range ms {
		if err := c.add(m); err != nil {
			return err
		}
	}
	return c.s.write(&c.index, c.branch)
}

// Build writes the index once.
func (c *perFileContext) Build(n int64, message func(i int64) Message) error {
	for i := range n {
		if err := c.add(message(i)); err != nil {
			return err
		}
	}
	return c.s.write(&c.index, c.branch)
}

func (c *perFileContext) stored(i int64) (Stored, error) {
	b, err := os.ReadFile(c.path(c.index.Messages[i].ID))
	if err != nil {
		return Stored{}, err
	}
	return parseLine(b, i)
}

func (c *perFileContext) Last(n int) ([]Stored, error) {
	total := int64(len(c.index.Messages))
	return c.Range(max(total-int64(n), 0), total)
}

func (c *perFileContext) Range(from, to int64) ([]Stored, error) {
	var out []Stored
	for i := from; i < min(to, int64(len(c.index.Messages))); i++ {
		m, err := c.stored(i)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (c *perFileContext) All(f func(Stored) error) error {
	for i := range c.index.Messages {
		m, err := c.stored(int64(i))
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *perFileContext) ByID(id uuid.UUID) (Stored, error) {
	b, err := os.ReadFile(c.path(id))
	if err != nil {
		return Stored{}, err
	}
	return parseLine(b, -1)
}

// Fork copies the index; the message files are shared.
func (c *perFileContext) Fork(name string, at int64) error {
	x := c.index
	x.Messages = x.Messages[:at]
	return c.s.write(&x, name)
}

func (c *perFileContext) Settle() error { return nil }
func (c *perFileContext) Close() error  { return nil }
