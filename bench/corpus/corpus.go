// Package corpus makes the messages of a benchmark: bodies sampled from real conversations, with ids, the same
// for every engine and every run.
package corpus

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxBody is the size, in bytes, above which a message is left out: a few images would decide every figure.
const MaxBody = 64 << 10

// DataEnv names a folder with more real conversations, in claude-code/.
const DataEnv = "CTXDIR_TEST_DATA"

// Corpus is a set of message bodies. Their sizes follow the distribution of the conversations they come from.
type Corpus struct {
	bodies []body
	// About says where the bodies come from.
	About string
}

type body struct {
	raw        []byte
	role, kind string // as a framework knows them when it stores a message
}

func bodyOf(raw []byte) body {
	b := body{raw: raw}
	if t, err := Decode(raw); err == nil {
		b.role, b.kind = cmp.Or(t.Role, t.Message.Role), t.Type
	}
	return b
}

// Load reads every JSON Lines file under testdata, and under claude-code in the folder that DataEnv names. Lines
// that are no JSON object in UTF-8 are passed over: test data holds damaged ones on purpose.
func Load(testdata string) (*Corpus, error) {
	c := &Corpus{About: "testdata"}
	if err := c.addFolder(testdata); err != nil {
		return nil, err
	}
	if dir := os.Getenv(DataEnv); dir != "" {
		err := c.addFolder(filepath.Join(dir, "claude-code"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			c.About += " and " + DataEnv
		}
	}
	if len(c.bodies) == 0 {
		return nil, fmt.Errorf("no messages in %s", testdata)
	}
	return c, nil
}

func (c *Corpus) addFolder(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(b) {
			c.add(line)
		}
		return nil
	})
}

func (c *Corpus) add(line []byte) {
	v := jsontext.Value(bytes.TrimSpace(line))
	if len(v) == 0 || len(v) > MaxBody || v[0] != '{' || !utf8.Valid(v) {
		return
	}
	v = slices.Clone(v)
	if v.Compact() == nil {
		c.bodies = append(c.bodies, bodyOf(v))
	}
}

// Len is the number of distinct bodies.
func (c *Corpus) Len() int { return len(c.bodies) }

// Once is a stream of every body once, in order.
func (c *Corpus) Once() *Once { return &Once{c} }

// Once gives every body once.
type Once struct{ c *Corpus }

// Body is body i.
func (o *Once) Body(i int64) []byte { return o.c.bodies[i].raw }

// Quantile is the size in bytes below which the share q of the bodies lies.
func (c *Corpus) Quantile(q float64) int {
	sizes := make([]int, len(c.bodies))
	for i, b := range c.bodies {
		sizes[i] = len(b.raw)
	}
	slices.Sort(sizes)
	return sizes[min(int(q*float64(len(sizes))), len(sizes)-1)]
}

// Mean is the mean size of a body in bytes.
func (c *Corpus) Mean() int {
	sum := 0
	for _, b := range c.bodies {
		sum += len(b.raw)
	}
	return sum / len(c.bodies)
}

// Below is the corpus with the bodies of less than size bytes.
func (c *Corpus) Below(size int) *Corpus {
	g := &Corpus{About: c.About}
	for _, b := range c.bodies {
		if len(b.raw) < size {
			g.bodies = append(g.bodies, b)
		}
	}
	return g
}

// Fixed is a corpus of one body.
func Fixed(about string, raw ...[]byte) *Corpus {
	c := &Corpus{About: about}
	for _, b := range raw {
		c.bodies = append(c.bodies, bodyOf(b))
	}
	return c
}

// WriteFile writes n of the bodies, one a line, for a worker that is to hold no more than it needs.
func (c *Corpus) WriteFile(path string, n int) error {
	var buf bytes.Buffer
	s := c.Stream(1)
	for i := range int64(n) {
		buf.Write(s.Body(i))
		buf.WriteByte('\n')
	}
	return os.WriteFile(path, buf.Bytes(), 0o600)
}

// ReadFile reads what WriteFile wrote.
func ReadFile(path string) (*Corpus, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Corpus{About: filepath.Base(path)}
	for line := range bytes.Lines(b) {
		c.bodies = append(c.bodies, bodyOf(bytes.TrimSuffix(line, []byte("\n"))))
	}
	return c, nil
}
