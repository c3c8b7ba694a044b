package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir"
)

// An artifact is a context of this kind, with its name as external id. Each version is a message, whose payload is the
// content. So an artifact is encrypted, copied, removed and erased as conversations are.
const artifactKind = "artifact"

const (
	maxArtifact      = 16 << 20 // bytes of a version
	maxArtifactMedia = 200      // bytes of a media type
)

var artifactName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// artifactBody is the message of a version.
type artifactBody struct {
	Role      string `json:"role"`
	MediaType string `json:"media_type"`
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"` // in bytes
	Content   string `json:"content"`
}

type artifact struct {
	Name      string    `json:"name"`
	Version   int64     `json:"version"` // the first is 1
	MediaType string    `json:"media_type"`
	SHA256    string    `json:"sha256"`
	Size      int64     `json:"size"`
	StoredAt  time.Time `json:"stored_at,omitzero"`
}

type artifactList struct {
	Artifacts []listedArtifact `json:"artifacts"`
	Next      string           `json:"next,omitempty"` // the cursor of the next page
}

type listedArtifact struct {
	Name      string    `json:"name"`
	Versions  int64     `json:"versions"`
	Context   string    `json:"context"` // removing it removes the artifact
	UpdatedAt time.Time `json:"updated_at"`
}

func nameOfArtifact(r *http.Request) (string, error) {
	name := r.PathValue("name")
	if !artifactName.MatchString(name) {
		return "", invalid("name: expected 1 to 128 letters, digits and . _ -, the first a letter or digit")
	}
	return name, nil
}

// putArtifact adds a version. Content that the newest version has already adds none, so that a request can be repeated.
func (x *Server) putArtifact(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	version := p.number("version", 0)
	if err := p.done(); err != nil {
		return err
	}
	name, err := nameOfArtifact(r)
	if err != nil {
		return err
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || len(media) > maxArtifactMedia || r.Header.Get("Content-Encoding") != "" {
		return problem(codeMediaType, "expected a Content-Type, and a body that is not compressed")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxArtifact)
	content, err := readAll(r)
	if err != nil {
		return err
	}
	if len(content) == 0 {
		return invalid("the body is empty")
	}
	sum := sha256.Sum256(content)
	a := artifact{Name: name, MediaType: media, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	body, err := json.Marshal(artifactBody{"artifact", a.MediaType, a.SHA256, a.Size, ""})
	if err != nil {
		return err
	}
	d := ctxdir.Draft{Body: body, Attachments: []ctxdir.Attachment{{At: "/content", MediaType: media, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}}}
	status := http.StatusCreated
	err = x.store.of(r).s.UseOrCreate(r.Context(), ctxdir.Metadata{Kind: artifactKind, ExternalID: name}, func(c *ctxdir.Context) error {
		newest, err := versionOf(r, c, name, 0)
		switch {
		case err == nil && newest.SHA256 == a.SHA256 && newest.MediaType == media && (version == 0 || version == newest.Version):
			a, status = newest.artifact, http.StatusOK
			return nil
		case err != nil && !errors.Is(err, errNoVersion):
			return err
		}
		var o ctxdir.WriteOptions
		if version > 0 {
			o.Position = new(version - 1)
		}
		done, err := c.Active().Append(r.Context(), d, o)
		a.Version = done.Position + 1
		return err
	})
	if err != nil {
		return err
	}
	return sendDocument(w, status, a)
}

var errNoVersion = problem(codeNotFound, "the artifact has no such version")

// storedArtifact is a version with its message.
type storedArtifact struct {
	artifact
	message *ctxdir.Message
}

// versionOf returns a version of an artifact, the newest one for 0. The error is errNoVersion if there is none.
func versionOf(r *http.Request, c *ctxdir.Context, name string, version int64) (a storedArtifact, err error) {
	b := c.Active()
	if version == 0 {
		if version, err = b.Len(r.Context()); err != nil {
			return a, err
		}
	}
	all, err := b.Range(r.Context(), max(version-1, 0), version)
	if err != nil || len(all) == 0 {
		return a, errors.Join(err, errNoVersion)
	}
	a.message = all[0]
	if a.message.Unavailable != nil {
		return a, a.message.Unavailable
	}
	var body struct {
		MediaType string `json:"media_type"`
		SHA256    string `json:"sha256"`
		Size      int64  `json:"size"`
	}
	if err := json.Unmarshal(a.message.Stored, &body); err != nil {
		return a, err
	}
	a.artifact = artifact{name, a.message.Position + 1, body.MediaType, body.SHA256, body.Size, a.message.StoredAt}
	return a, nil
}

// getArtifact sends the content of a version.
func (x *Server) getArtifact(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	version := p.number("version", 0)
	if err := p.done(); err != nil {
		return err
	}
	name, err := nameOfArtifact(r)
	if err != nil {
		return err
	}
	return x.store.of(r).use(r.Context(), ctxdir.ContextID(artifactKind, name), func(c *ctxdir.Context) error {
		a, err := versionOf(r, c, name, version)
		if errors.Is(err, errNoVersion) {
			return errNoVersion
		}
		if err != nil {
			return err
		}
		payloads, err := a.message.Payloads()
		if err != nil {
			return err
		}
		for _, p := range payloads {
			if p.Pointer != "/content" || p.SHA256 != a.SHA256 || p.Problem != "" {
				continue
			}
			h := w.Header()
			h.Set("Artifact-Version", strconv.FormatInt(a.Version, 10))
			h.Set("Artifact-Media-Type", a.MediaType)
			return sendBytes(w, r, p.SHA256, version > 0, func() (io.ReadCloser, int64, error) { return a.message.Open(p) })
		}
		return problem(codeDamaged, "the version does not have its content")
	})
}

func (x *Server) listArtifacts(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	limit, cursor := p.limit(100, 1000), p.text("cursor")
	if err := p.done(); err != nil {
		return err
	}
	list := artifactList{Artifacts: []listedArtifact{}}
	last := ""
	for s, err := range x.store.of(r).list(r.Context(), ctxdir.ListOptions{Kind: artifactKind, Limit: limit + 1, Cursor: cursor}) {
		if err != nil {
			return err
		}
		if len(list.Artifacts) == limit {
			list.Next = last
			break
		}
		list.Artifacts = append(list.Artifacts, listedArtifact{s.ExternalID, s.Messages, s.ID.String(), s.UpdatedAt})
		last = s.Cursor
	}
	return sendDocument(w, http.StatusOK, list)
}
