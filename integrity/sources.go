package integrity

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
)

// copies finds messages in a context's trash: versions, files set aside, journals, lines of envelopes. A copy is what
// was committed, byte for byte.
type copies struct {
	dir   *ctxfolder.Dir
	where map[content]piece
	held  map[content][]byte // files that the repair is about to move
	other map[content][]byte // messages in packs that the index does not read
}

// content identifies an envelope.
type content struct {
	size int64
	sum  uint64
}

// piece is a part of a file.
type piece struct {
	path string
	off  int64
	size int64
}

// find searches for the wanted envelopes.
func find(dir *ctxfolder.Dir, wanted map[content]bool) (*copies, error) {
	c := &copies{dir, map[content]piece{}, map[content][]byte{}, map[content][]byte{}}
	if len(wanted) == 0 {
		return c, nil
	}
	for e, err := range dir.FS.ReadDir(".") { // a journal may be of another history
		if err != nil {
			return nil, err
		}
		if _, journal := ctxfolder.ParseJournalFile(e.Name()); journal && e.Type().IsRegular() {
			if err := c.scan(e.Name(), wanted); err != nil {
				return nil, err
			}
		}
	}
	if err := c.walk(ctxfolder.Trash, wanted); err != nil {
		return nil, err
	}
	return c, index.EachArchivedEnvelope(dir, func(raw []byte) {
		if key := (content{int64(len(raw)), message.Sum(raw)}); wanted[key] {
			c.other[key] = bytes.Clone(raw)
		}
	})
}

func (c *copies) walk(folder string, wanted map[content]bool) error {
	for e, err := range c.dir.FS.ReadDir(folder) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		path := folder + "/" + e.Name()
		switch {
		case e.IsDir():
			err = c.walk(path, wanted)
		case e.Type().IsRegular():
			err = c.scan(path, wanted)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scan searches the lines of a file: a line may be an envelope, a journal's record of one, or a note that contains one.
func (c *copies) scan(path string, wanted map[content]bool) error {
	f, err := c.dir.FS.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil // an unreadable copy is no copy
	}
	defer f.Close()
	for part, err := range vfs.Data(f) {
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		_, start, _ := part.Outer()
		c.scanLines(part, path, start, wanted)
	}
	return nil
}

// scanLines searches the lines of a part of a file that begins at off.
func (c *copies) scanLines(part io.Reader, path string, off int64, wanted map[content]bool) {
	r := bufio.NewReaderSize(part, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		for _, body := range bodies(line) {
			size := int64(len(body.b))
			key := content{size, message.Sum(body.b)}
			if wanted[key] {
				c.where[key] = piece{path, off + int64(body.at), size}
			}
		}
		off += int64(len(line))
		if err != nil { // io.EOF, or the rest is unreadable
			return
		}
	}
}

// body is a part of a line.
type body struct {
	at int
	b  []byte
}

// bodies returns the parts of a line that may be envelopes.
func bodies(line []byte) []body {
	mark := len(line) - len(bytes.TrimPrefix(line, []byte("\ufeff")))
	line = message.Text(line)
	if bytes.HasPrefix(line, []byte(`{"ctxdir":"`+message.Version)) {
		return []body{{mark, line}}
	}
	for _, name := range []string{`"body":`, `"envelope":`} {
		if at := bytes.Index(line, []byte(name)); at >= 0 && bytes.HasSuffix(line, []byte("}")) {
			at += len(name)
			return []body{{mark + at, line[at : len(line)-1]}}
		}
	}
	return nil
}

// copyOf returns what was committed of a message, from a journal, a pack or the trash, and its source. It returns nil
// if there is no copy.
func (c *copies) copyOf(log *index.Log, e *index.Entry) (raw []byte, from string) {
	if raw, ok := log.ReadRecord(e); ok {
		return raw, "the journal"
	}
	if raw := c.held[content{e.Size, e.Sum}]; raw != nil {
		return raw, "the place of another message"
	}
	if raw := c.other[content{e.Size, e.Sum}]; raw != nil {
		return raw, "a pack"
	}
	p, ok := c.where[content{e.Size, e.Sum}]
	if !ok {
		return nil, ""
	}
	f, err := c.dir.FS.OpenFile(p.path, os.O_RDONLY)
	if err != nil {
		return nil, ""
	}
	defer f.Close()
	raw, err = io.ReadAll(io.NewSectionReader(f, p.off, p.size))
	if err != nil || message.Sum(raw) != e.Sum || int64(len(raw)) != e.Size {
		return nil, ""
	}
	if inside, ok := strings.CutPrefix(p.path, ctxfolder.Trash+"/"); ok {
		return raw, "the trash (" + inside + ")"
	}
	return raw, p.path
}
