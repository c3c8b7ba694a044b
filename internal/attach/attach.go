// Package attach puts files into messages, and saves the files of messages.
package attach

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
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

// Draft is a message of files and a text, which may be empty.
func Draft(role, text string, paths []string) (ctxdir.Draft, error) {
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
