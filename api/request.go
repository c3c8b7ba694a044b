package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

// invalid is a fault of the request.
func invalid(format string, args ...any) error { return problem(codeInvalid, format, args...) }

// parameters reads the query of a request. The first fault stays, and an unknown name is one: a misspelt condition
// would show more than was asked for.
type parameters struct {
	values url.Values
	known  []string
	err    error
}

func parametersOf(r *http.Request) *parameters {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &parameters{values: values}
	if err != nil {
		p.err = invalid("the query is not valid: %v", err)
	}
	return p
}

func (p *parameters) fail(name, format string, args ...any) {
	if p.err == nil {
		p.err = invalid("%s: %s", name, fmt.Sprintf(format, args...))
	}
}

// all returns the values of a parameter that may be repeated.
func (p *parameters) all(name string) []string {
	p.known = append(p.known, name)
	return p.values[name]
}

func (p *parameters) text(name string) string {
	values := p.all(name)
	if len(values) > 1 {
		p.fail(name, "given %d times", len(values))
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func (p *parameters) has(name string) bool { return len(p.values[name]) > 0 }

// number returns an integer that is not negative, or without one the default.
func (p *parameters) number(name string, without int64) int64 {
	text := p.text(name)
	if text == "" {
		return without
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		p.fail(name, "%q is not a non-negative integer", text)
		return without
	}
	return int64(n)
}

// limit returns the size of a page.
func (p *parameters) limit(without, most int64) int {
	n := p.number("limit", without)
	if n == 0 || n > most {
		p.fail("limit", "expected a number from 1 to %d", most)
	}
	return int(n)
}

func (p *parameters) yes(name string) bool {
	switch text := p.text(name); text {
	case "true", "1":
		return true
	case "", "false", "0":
	default:
		p.fail(name, "%q is neither true nor false", text)
	}
	return false
}

// oneOf returns the parameter, which is one of the values; the first if it is not given.
func oneOf[T ~string](p *parameters, name string, allowed ...T) T {
	text := T(p.text(name))
	if text == "" {
		return allowed[0]
	}
	if !slices.Contains(allowed, text) {
		names := make([]string, len(allowed))
		for i, a := range allowed {
			names[i] = string(a)
		}
		p.fail(name, "unknown value %q; use one of: %s", text, strings.Join(names, ", "))
	}
	return text
}

func (p *parameters) time(name string) time.Time {
	text := p.text(name)
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		p.fail(name, "%q is not an RFC 3339 time, such as 2026-01-02T15:04:05Z", text)
	}
	return at
}

// zone is a time zone by its name in the IANA database, UTC without one.
func (p *parameters) zone(name string) *time.Location {
	text := p.text(name)
	zone, err := time.LoadLocation(text)
	if err != nil || text == "Local" {
		p.fail(name, "%q is not a time zone, such as Europe/Paris", short(text))
		return time.UTC
	}
	return zone
}

func (p *parameters) id(name string) uuid.UUID {
	text := p.text(name)
	if text == "" {
		return uuid.Nil
	}
	id, err := parseID(text)
	if err != nil {
		p.fail(name, "%v", err)
	}
	return id
}

// done returns the first fault.
func (p *parameters) done() error {
	if p.err != nil {
		return p.err
	}
	for name := range p.values {
		if !slices.Contains(p.known, name) {
			return invalid("unknown parameter %q; this operation knows: %s", name, strings.Join(p.known, ", "))
		}
	}
	return nil
}

func parseID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 || id == uuid.Nil {
		return uuid.Nil, invalid("%q is not a UUID", short(text))
	}
	return id, nil
}

// contextOf returns the id of the context in the path: a full id, a unique part of one, or an external id.
func (x *Server) contextOf(r *http.Request) (uuid.UUID, error) {
	ref := r.PathValue("context")
	if len(ref) > 8<<10 {
		return uuid.Nil, problem(codeNotFound, "no context has an id of %d characters", len(ref))
	}
	id, err := x.store.of(r).resolve(r.Context(), ref)
	if errors.Is(err, ctxdir.ErrInvalid) {
		return id, problem(codeNotFound, "no context matches %q by id prefix, id suffix or external id", short(ref))
	}
	return id, err
}

// withContext calls f with the open context in the path.
func (x *Server) withContext(r *http.Request, f func(c *ctxdir.Context) error) error {
	id, err := x.contextOf(r)
	if err != nil {
		return err
	}
	return x.store.of(r).use(r.Context(), id, f)
}

// withBranch calls f with the branch in the path.
func (x *Server) withBranch(r *http.Request, f func(c *ctxdir.Context, b *ctxdir.Branch) error) error {
	return x.withContext(r, func(c *ctxdir.Context) error {
		b, err := c.Branch(r.PathValue("branch"))
		if err != nil {
			return err
		}
		return f(c, b)
	})
}

// mediaType returns the media type of a body, without its parameters.
func mediaType(r *http.Request) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// wantMedia rejects a body of another media type, and one that is compressed. A form of a web page cannot send one of
// these types.
func wantMedia(r *http.Request, types ...string) error {
	if r.Header.Get("Content-Encoding") != "" {
		return problem(codeMediaType, "the body must not be compressed")
	}
	if !slices.Contains(types, mediaType(r)) {
		return problem(codeMediaType, "expected Content-Type: %s", strings.Join(types, " or "))
	}
	return nil
}

// readDocument reads a JSON object. An unknown member is a fault: a misspelt one would be ignored.
func readDocument(r *http.Request, v any) error {
	if err := wantMedia(r, "application/json", "application/merge-patch+json"); err != nil {
		return err
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return documentError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("the body has more than one JSON value")
	}
	return nil
}

func documentError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return err
	case errors.Is(err, io.EOF):
		return invalid("the body is empty; expected a JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("the JSON in the body is truncated")
	}
	return invalid("the body is not valid: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// sendDocument sends a JSON object.
func sendDocument(w http.ResponseWriter, status int, v any) error {
	b := append(record.Encode(v), '\n')
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err := w.Write(b)
	return err
}

// noBody rejects a body that an operation would ignore.
func noBody(r *http.Request) error {
	var b [1]byte
	if n, _ := io.ReadFull(r.Body, b[:]); n > 0 && !bytes.ContainsAny(b[:], " \n\r\t") {
		return invalid("this operation takes no body")
	}
	return nil
}
