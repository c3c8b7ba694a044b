package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/transcript"
)

// A Saver writes the attached files of messages to a folder.
type Saver struct {
	Saved int // files
	root  *os.Root
}

// NewSaver returns a saver to a folder, which it makes if it is missing.
func NewSaver(dir string) (*Saver, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Saver{root: root}, nil
}

// Close closes the folder.
func (s *Saver) Close() error { return s.root.Close() }

// Message saves the files of a message under the names in the message, or else by position and number.
func (s *Saver) Message(ctx context.Context, m *ctxdir.Message) error {
	refs, err := m.Payloads()
	if err != nil || m.Unavailable != nil {
		return err
	}
	texts, err := m.Texts(ctx) // a file's name may be a payload
	if texts == nil {
		return err
	}
	left := int64(maxAttached) // one payload may be referred to many times
	for i, ref := range refs {
		if !ref.Binary {
			continue // a text
		}
		if left -= ref.Size; left < 0 {
			return fmt.Errorf("message %d: %w: its files exceed the limit of %d bytes", m.Position, ctxdir.ErrTooLarge, int64(maxAttached))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name := SafeName(nameFor(texts, ref.Pointer))
		if name == "" {
			name = fmt.Sprintf("%d-%d%s", m.Position, i, extension(ref.MediaType))
		}
		if err := s.save(m, ref, name); err != nil {
			return fmt.Errorf("message %d: %w", m.Position, err)
		}
	}
	return nil
}

// save writes a payload to a new file: if the name is taken, it adds a number. It writes no more bytes than the
// reference says.
func (s *Saver) save(m *ctxdir.Message, ref ctxdir.Payload, name string) (err error) {
	if dir := path.Dir(name); dir != "." && s.root.MkdirAll(dir, 0o755) != nil {
		name = path.Base(name) // a file has the folder's name
	}
	r, size, err := m.Open(ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if size != ref.Size {
		return fmt.Errorf("%w: the payload has %d bytes, but its reference says %d", ctxdir.ErrDamaged, size, ref.Size)
	}
	ext := path.Ext(name)
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	for n := 2; errors.Is(err, fs.ErrExist) && n < 10_000; n++ {
		f, err = s.root.OpenFile(fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Close()); err == nil {
		s.Saved++
	}
	return err
}

// nameFor returns the file name of a payload: the member "filename", "name" or "path" of the nearest object around it
// that has one.
func nameFor(body json.RawMessage, pointer string) string {
	for at := pointer; at != ""; {
		at = at[:max(strings.LastIndexByte(at, '/'), 0)]
		if name := transcript.ObjectOf(transcript.ValueAt(body, at)).Text("filename", "name", "path"); name != "" {
			return name
		}
		if strings.Count(at, "/") < 2 {
			break
		}
	}
	return ""
}

func extension(mediaType string) string {
	if all, err := mime.ExtensionsByType(mediaType); err == nil && len(all) > 0 {
		return all[len(all)-1]
	}
	return ".bin"
}
