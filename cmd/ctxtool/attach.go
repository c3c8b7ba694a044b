package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// maxAttached bounds the files in a message, in bytes: the library's limit.
const maxAttached = 1 << 30

// multipartMessage is a message with attachments: its content is the text, then each file.
type multipartMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type fileContent struct {
	Type     string     `json:"type"` // "image" or "file"
	Filename string     `json:"filename"`
	Source   fileSource `json:"source"`
}

type fileSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"` // a payload
}

// multipartDraft is a message of files and a text, which may be empty.
func multipartDraft(role, text string, paths []string) (ctxdir.Draft, error) {
	content := multipartMessage{Role: role}
	if text != "" {
		content.Content = append(content.Content, textContent{"text", text})
	}
	var attachments []ctxdir.Attachment
	for _, p := range paths {
		mediaType, err := mediaTypeOf(p)
		if err != nil {
			return ctxdir.Draft{}, err
		}
		kind := "file"
		if strings.HasPrefix(mediaType, "image/") {
			kind = "image"
		}
		attachments = append(attachments, ctxdir.Attachment{
			At: fmt.Sprintf("/content/%d/source/data", len(content.Content)), MediaType: mediaType,
			Open: func() (io.ReadCloser, error) { return openRegular(p) },
		})
		source := fileSource{"base64", mediaType, ""}
		content.Content = append(content.Content, fileContent{kind, filepath.ToSlash(filepath.Clean(p)), source})
	}
	return ctxdir.Draft{Body: record.Encode(content), Attachments: attachments}, nil
}

// openRegular opens a regular file. A FIFO would wait for its writer, and a device might never end.
func openRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err == nil && info.Size() > maxAttached {
		err = fmt.Errorf("%s: %w: the files of one message exceed the limit of %d bytes", name, ctxdir.ErrTooLarge, int64(maxAttached))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// mediaTypeOf detects the type of a file by its beginning, or by its name if the beginning is merely text or binary.
func mediaTypeOf(name string) (string, error) {
	f, err := openRegular(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	mediaType := http.DetectContentType(head[:n])
	if generic := strings.HasPrefix(mediaType, "text/plain") || mediaType == "application/octet-stream"; generic {
		if byName := mime.TypeByExtension(filepath.Ext(name)); byName != "" {
			mediaType = byName
		}
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return mediaType, nil
}

// saver writes the attached files of messages to a folder.
type saver struct {
	root  *os.Root
	saved int
}

func newSaver(dir string) (*saver, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &saver{root: root}, nil
}

func (s *saver) Close() error { return s.root.Close() }

// message saves the files of a message under the names in the message, or else by position and number.
func (s *saver) message(ctx context.Context, m *ctxdir.Message) error {
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
		name := safeName(nameFor(texts, ref.Pointer))
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
func (s *saver) save(m *ctxdir.Message, ref ctxdir.Payload, name string) (err error) {
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
		s.saved++
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
