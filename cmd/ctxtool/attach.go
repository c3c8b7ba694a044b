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
)

// maxAttached bounds the files in a message, in bytes: the library's limit.
const maxAttached = 1 << 30

// A message with attachments has a content of parts: the text, and each file in order.
type attachedContent struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type attachedText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type attachedFile struct {
	Type     string         `json:"type"` // "image" or "file"
	Filename string         `json:"filename"`
	Source   attachedSource `json:"source"`
}

type attachedSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"` // a payload
}

// attachedDraft makes a message of a text, which may be empty, and files.
func attachedDraft(role, text string, paths []string) (ctxdir.Draft, error) {
	content := attachedContent{Role: role}
	if text != "" {
		content.Content = append(content.Content, attachedText{"text", text})
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
		content.Content = append(
			content.Content,
			attachedFile{kind, filepath.ToSlash(filepath.Clean(p)), attachedSource{"base64", mediaType, ""}},
		)
	}
	return ctxdir.Draft{Body: encode(content), Attachments: attachments}, nil
}

// openRegular opens a file and nothing else: a FIFO would wait for who writes to it, a device might never end.
func openRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err == nil && info.Size() > maxAttached {
		err = fmt.Errorf("%s: %w: the files in a message may have %d bytes", name, ctxdir.ErrTooLarge, int64(maxAttached))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// mediaTypeOf tells by a file's beginning what it is, and by its name where that says no more than text.
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
		if told := mime.TypeByExtension(filepath.Ext(name)); told != "" {
			mediaType = told
		}
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return mediaType, nil
}

// saver writes the payloads of messages that are files to a folder.
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

// message writes the message's files, under the names they had if the message tells, else by position and number.
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
			return fmt.Errorf("message %d: %w: its files have more than %d bytes", m.Position, ctxdir.ErrTooLarge, int64(maxAttached))
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

// save never replaces a file: a second one of a name gets a number. It writes no more than the reference says.
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
		return fmt.Errorf("%w: a payload of %d bytes, the reference says %d", ctxdir.ErrDamaged, size, ref.Size)
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

// nameFor returns the file name that a body tells of a payload: the member "filename", "name" or "path" of the nearest
// object around it that has one.
func nameFor(body json.RawMessage, pointer string) string {
	for at := pointer; at != ""; {
		at = at[:max(strings.LastIndexByte(at, '/'), 0)]
		if name := objectOf(valueAt(body, at)).text("filename", "name", "path"); name != "" {
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
