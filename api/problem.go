package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Problem is the body of every response that reports an error, a problem document of RFC 9457.
type Problem struct {
	Type    string      `json:"type"` // where the documentation describes the code
	Title   string      `json:"title"`
	Status  int         `json:"status"`
	Detail  string      `json:"detail"`
	Code    string      `json:"code"` // for programs; see [Codes]
	Context *uuid.UUID  `json:"context,omitempty"`
	Branch  string      `json:"branch,omitempty"`
	ID      *uuid.UUID  `json:"id,omitempty"`      // of the message
	Line    int64       `json:"line,omitempty"`    // of a body in JSON Lines, from 1
	Matches []uuid.UUID `json:"matches,omitempty"` // what an ambiguous id may be
}

// Error implements error, so that a handler can return a problem.
func (p *Problem) Error() string { return p.Detail }

// Code is a kind of problem.
type Code struct {
	Name   string
	Status int
	Title  string
}

// The codes of problems, with the HTTP status and the title of each.
var (
	codeUnauthorized = Code{"unauthorized", http.StatusUnauthorized, "The token is missing or wrong"}
	codeTooMany      = Code{"too_many_requests", http.StatusTooManyRequests, "Too many wrong tokens"}
	codeMisdirected  = Code{"misdirected", http.StatusMisdirectedRequest, "The server does not have this host name"}
	codeOrigin       = Code{"cross_origin", http.StatusForbidden, "Another web site sent the request"}
	codeForbidden    = Code{"forbidden", http.StatusForbidden, "The token does not permit this"}
	codeReadOnly     = Code{"read_only", http.StatusForbidden, "The server is read-only"}
	codeNoOperation  = Code{"no_operation", http.StatusNotFound, "The API has no such operation"}
	codeMethod       = Code{"method", http.StatusMethodNotAllowed, "The path does not have this method"}
	codeNotFound     = Code{"not_found", http.StatusNotFound, "Not found"}
	codeErased       = Code{"erased", http.StatusGone, "The message was erased"}
	codeAmbiguous    = Code{"ambiguous", http.StatusConflict, "The id matches several contexts"}
	codeExists       = Code{"exists", http.StatusConflict, "The name or id is taken"}
	codeConflict     = Code{"conflict", http.StatusConflict, "A message with this id has other content"}
	codePosition     = Code{"position", http.StatusConflict, "The position is not the expected one"}
	codeShared       = Code{"shared", http.StatusConflict, "Other branches show the message too"}
	codePrecondition = Code{"precondition", http.StatusPreconditionFailed, "The context has changed"}
	codeInvalid      = Code{"invalid", http.StatusBadRequest, "The request is not valid"}
	codeMediaType    = Code{"media_type", http.StatusUnsupportedMediaType, "The body has another media type"}
	codeTooLarge     = Code{"too_large", http.StatusRequestEntityTooLarge, "Too large"}
	codeLocked       = Code{"locked", http.StatusServiceUnavailable, "Another process holds the lock"}
	codeTimeout      = Code{"timeout", http.StatusServiceUnavailable, "The request took too long"}
	codeUnavailable  = Code{"unavailable", http.StatusServiceUnavailable, "The server cannot answer now"}
	codeNoSpace      = Code{"no_space", http.StatusInsufficientStorage, "The disk is full"}
	codeDurability   = Code{"durability", http.StatusInternalServerError, "A write may not be durable"}
	codeDamaged      = Code{"damaged", http.StatusInternalServerError, "Stored data is damaged"}
	codeInternal     = Code{"internal", http.StatusInternalServerError, "The request failed"}
)

// Codes are all codes of problems, in the order of the documentation.
var Codes = []Code{
	codeUnauthorized, codeTooMany, codeMisdirected, codeOrigin, codeForbidden, codeReadOnly, codeNoOperation, codeMethod, codeNotFound,
	codeErased, codeAmbiguous, codeExists, codeConflict, codePosition, codeShared, codePrecondition, codeInvalid, codeMediaType,
	codeTooLarge, codeLocked, codeTimeout, codeUnavailable, codeNoSpace, codeDurability, codeDamaged, codeInternal,
}

// causes are the codes of errors, the most telling one first.
var causes = []struct {
	err  error
	code Code
}{
	{ctxdir.ErrReadOnly, codeReadOnly},
	{syscall.EROFS, codeReadOnly},
	{syscall.ENOSPC, codeNoSpace},
	{syscall.EDQUOT, codeNoSpace},
	{ctxdir.ErrDurability, codeDurability},
	{ctxdir.ErrErased, codeErased},
	{ctxdir.ErrAmbiguous, codeAmbiguous},
	{ctxdir.ErrExist, codeExists},
	{ctxdir.ErrConflict, codeConflict},
	{ctxdir.ErrPosition, codePosition},
	{ctxdir.ErrShared, codeShared},
	{ctxdir.ErrTooLarge, codeTooLarge},
	{ctxdir.ErrInvalid, codeInvalid},
	{ctxdir.ErrLocked, codeLocked},
	{ctxdir.ErrClosed, codeUnavailable},
	{ctxdir.ErrDamaged, codeDamaged},
	{ctxdir.ErrFormat, codeDamaged},
	{ctxdir.ErrUnexamined, codeDamaged},
	{ctxdir.ErrNotExist, codeNotFound},
	{context.DeadlineExceeded, codeTimeout},
}

// problem describes a fault of the request.
func problem(code Code, format string, args ...any) *Problem {
	return &Problem{Code: code.Name, Status: code.Status, Title: code.Title, Detail: fmt.Sprintf(format, args...)}
}

// short is a text for a message.
func short(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}

// problemOf describes an error. root is the folder of the store: problems name its files relative to it.
func problemOf(err error, root string) *Problem {
	var p *Problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
	case errors.As(err, &tooLarge):
		p = problem(codeTooLarge, "the body exceeds the limit of %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded): // its text has the addresses of the connection
		p = problem(codeTimeout, "the body did not arrive in time")
	default:
		p = problem(codeInternal, "%s", withoutRoot(err, root))
		for _, c := range causes {
			if errors.Is(err, c.err) {
				p.Code, p.Status, p.Title = c.code.Name, c.code.Status, c.code.Title
				break
			}
		}
	}
	var at *ctxdir.Error
	if errors.As(err, &at) {
		p.Branch, p.Matches = at.Branch, at.Matches
		if at.Context != uuid.Nil {
			p.Context = &at.Context
		}
		if at.ID != uuid.Nil {
			p.ID = &at.ID
		}
	}
	p.Type = "/docs#" + p.Code
	return p
}

// withoutRoot is the text of an error with paths relative to a folder.
func withoutRoot(err error, root string) string {
	text := err.Error()
	if root != "" {
		text = strings.ReplaceAll(strings.ReplaceAll(text, root+"/", ""), root, "the store")
	}
	return text
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Del("Content-Length")
	h.Del("ETag")
	switch p.Code {
	case codeUnauthorized.Name:
		h.Set("WWW-Authenticate", `Bearer realm="ctxdir"`)
	case codeLocked.Name, codeTooMany.Name, codeUnavailable.Name:
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// Unavailable answers a request that a server of several stores cannot give to one of them, such as while their database is
// away.
func Unavailable(w http.ResponseWriter) {
	p := problem(codeUnavailable, "the server cannot answer now; try again")
	p.Type = "/docs#" + p.Code
	p.write(w)
}
