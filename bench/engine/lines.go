package engine

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/google/uuid"
)

var linesEngine = &Engine{
	Name: Lines,
	About: "Claude Code and Codex style: one .jsonl file per branch, a line per message with O_APPEND and fdatasync. A resume reads " +
		"the whole file, and decodes only the requested messages. A look-up by id scans the file. A fork copies the lines before it",
	Open: func(dir string, d Durability) (Store, error) {
		return linesStore{dir, d}, os.MkdirAll(dir, 0o700)
	},
}

type linesStore struct {
	dir string
	d   Durability
}

func (s linesStore) Create(string) (string, error) {
	id := uuid.NewString()
	dir := filepath.Join(s.dir, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, Main+".jsonl"), nil, 0o600); err != nil {
		return "", err
	}
	return id, syncDir(dir)
}

func (s linesStore) Context(id, branch string) (Context, error) {
	dir := filepath.Join(s.dir, id)
	f, err := os.OpenFile(filepath.Join(dir, branch+".jsonl"), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	return &linesContext{dir: dir, f: f, d: s.d}, nil
}

func (s linesStore) List() ([]Summary, error) {
	dirs, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []Summary
	for _, d := range dirs {
		info, err := linesInfo(filepath.Join(s.dir, d.Name(), Main+".jsonl"))
		if err != nil {
			return nil, err
		}
		out = append(out, Summary{ID: d.Name(), Messages: info.Messages, Bytes: info.Bytes})
	}
	return out, nil
}

func (s linesStore) Close() error { return nil }

// linesInfo reads a file to count its lines: nothing else says how many there are.
func linesInfo(path string) (BranchInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return BranchInfo{}, err
	}
	defer f.Close()
	info := BranchInfo{Name: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		info.Messages += int64(bytes.Count(buf[:n], []byte("\n")))
		info.Bytes += int64(n)
		if err == io.EOF {
			return info, nil
		}
		if err != nil {
			return info, err
		}
	}
}

type linesContext struct {
	dir string
	f   *os.File
	d   Durability
}

func (c *linesContext) Branches() ([]BranchInfo, error) {
	paths, err := filepath.Glob(filepath.Join(c.dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var out []BranchInfo
	for _, p := range paths {
		info, err := linesInfo(p)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

func (c *linesContext) Append(m Message) error { return c.AppendBatch([]Message{m}) }

func (c *linesContext) AppendBatch(ms []Message) error {
	var buf []byte
	for _, m := range ms {
		buf = append(appendLine(buf, m), '\n')
	}
	if _, err := c.f.Write(buf); err != nil {
		return err
	}
	if c.d == Relaxed {
		return nil
	}
	return machine.Datasync(c.f)
}

func (c *linesContext) read() ([]byte, error) {
	info, err := c.f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	_, err = c.f.ReadAt(b, 0)
	return b, err
}

// Last reads the whole file, as these tools do, and parses only the end of it.
func (c *linesContext) Last(n int) ([]Stored, error) {
	b, err := c.read()
	if err != nil {
		return nil, err
	}
	total := int64(bytes.Count(b, []byte("\n")))
	end := len(b)
	n = int(min(int64(n), total))
	out := make([]Stored, n)
	for i := n - 1; i >= 0; i-- {
		start := bytes.LastIndexByte(b[:end-1], '\n') + 1
		if out[i], err = parseLine(b[start:end], total-int64(n-i)); err != nil {
			return nil, err
		}
		end = start
	}
	return out, nil
}

func (c *linesContext) Range(from, to int64) ([]Stored, error) {
	b, err := c.read()
	if err != nil {
		return nil, err
	}
	var out []Stored
	at := int64(0)
	for line := range bytes.Lines(b) {
		if at >= from {
			m, err := parseLine(line, at)
			if err != nil {
				return nil, err
			}
			out = append(out, m)
		}
		if at++; at >= to {
			break
		}
	}
	return out, nil
}

func (c *linesContext) All(f func(Stored) error) error {
	r := bufio.NewReaderSize(io.NewSectionReader(c.f, 0, 1<<62), 1<<20)
	for at := int64(0); ; at++ {
		line, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull { // a line above a megabyte
			var rest []byte
			line = bytes.Clone(line)
			rest, err = r.ReadBytes('\n')
			line = append(line, rest...)
		}
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		m, err := parseLine(line, at)
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return err
		}
	}
}

func (c *linesContext) ByID(id uuid.UUID) (Stored, error) {
	b, err := c.read()
	if err != nil {
		return Stored{}, err
	}
	start := bytes.Index(b, []byte(lineStart+id.String()))
	if start < 0 {
		return Stored{}, errNotFound
	}
	line, _, _ := bytes.Cut(b[start:], []byte("\n"))
	return parseLine(line, int64(bytes.Count(b[:start], []byte("\n"))))
}

func (c *linesContext) Fork(name string, at int64) error {
	b, err := c.read()
	if err != nil {
		return err
	}
	end := 0
	for range at {
		end += bytes.IndexByte(b[end:], '\n') + 1
	}
	return replaceFile(c.dir, name+".jsonl", c.d, func(w io.Writer) error {
		_, err := w.Write(b[:end])
		return err
	})
}

func (c *linesContext) Settle() error { return nil }
func (c *linesContext) Close() error  { return c.f.Close() }
