package api

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/ctxdir/ctxdir"
)

type payload struct {
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"` // in bytes
	Pointer   string `json:"pointer,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Binary    bool   `json:"binary"`
	Problem   string `json:"problem,omitempty"`
}

type payloadList struct {
	Payloads []payload `json:"payloads"`
}

func (x *Server) listPayloads(w http.ResponseWriter, r *http.Request) error {
	return x.withMessage(r, func(_ *ctxdir.Branch, m *ctxdir.Message) error {
		if m.Unavailable != nil {
			return m.Unavailable
		}
		all, err := m.Payloads()
		if err != nil {
			return err
		}
		list := payloadList{Payloads: []payload{}}
		for _, p := range all {
			list.Payloads = append(list.Payloads, payload{p.SHA256, p.Size, p.Pointer, p.MediaType, p.Binary, p.Problem})
		}
		return sendDocument(w, http.StatusOK, list)
	})
}

// getPayload sends a payload of a message. It never changes, so the hash is its ETag, and a client may ask for a range.
func (x *Server) getPayload(w http.ResponseWriter, r *http.Request) error {
	return x.withMessage(r, func(_ *ctxdir.Branch, m *ctxdir.Message) error {
		if m.Unavailable != nil {
			return m.Unavailable
		}
		all, err := m.Payloads()
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.SHA256 == r.PathValue("sha256") && p.Problem == "" {
				return sendPayload(w, r, p.SHA256, func() (io.ReadCloser, int64, error) { return m.Open(p) })
			}
		}
		return problem(codeNotFound, "the message has no such payload")
	})
}

// getBlob sends a payload by its hash alone.
func (x *Server) getBlob(w http.ResponseWriter, r *http.Request) error {
	sum := r.PathValue("sha256")
	return sendPayload(w, r, sum, func() (io.ReadCloser, int64, error) { return x.store.of(r).s.OpenPayload(r.Context(), sum) })
}

// sendPayload sends bytes that never change.
func sendPayload(w http.ResponseWriter, r *http.Request, sum string, open func() (io.ReadCloser, int64, error)) error {
	return sendBytes(w, r, sum, true, open)
}

// sendBytes sends bytes of a store. They are anybody's, so a browser must not show them as a page.
func sendBytes(w http.ResponseWriter, r *http.Request, sum string, stays bool, open func() (io.ReadCloser, int64, error)) error {
	content, size, err := open()
	if err != nil {
		return err
	}
	s := &seeker{open: open, r: content, size: size}
	defer s.close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("ETag", `"`+sum+`"`)
	if stays {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, s)
	if s.failed != nil {
		return s.failed // the body may have begun
	}
	return nil
}

// seeker is a stream with positions: it reads up to them, and begins again to go back.
type seeker struct {
	open   func() (io.ReadCloser, int64, error)
	r      io.ReadCloser
	size   int64
	at     int64 // of r
	want   int64
	failed error
}

func (s *seeker) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.want
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 || offset > s.size {
		return 0, errors.New("seek outside of the payload")
	}
	s.want = offset
	return offset, nil
}

func (s *seeker) Read(p []byte) (n int, err error) {
	if s.failed != nil {
		return 0, s.failed
	}
	defer func() {
		if err != nil && !errors.Is(err, io.EOF) {
			s.failed = err
		}
	}()
	if s.want < s.at {
		_ = s.r.Close()
		if s.r, s.size, err = s.open(); err != nil {
			return 0, err
		}
		s.at = 0
	}
	if s.want > s.at {
		skipped, err := io.CopyN(io.Discard, s.r, s.want-s.at)
		s.at += skipped
		if err != nil {
			return 0, err
		}
	}
	n, err = s.r.Read(p)
	s.at += int64(n)
	s.want = s.at
	return n, err
}

func (s *seeker) close() {
	if s.r != nil {
		_ = s.r.Close()
	}
}
