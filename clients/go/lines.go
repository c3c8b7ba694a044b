package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
)

// Dial returns a client for a server. The token is that of the server; it goes into the header of each request.
func Dial(server, token string, opts ...ClientOption) (*ClientWithResponses, error) {
	server = strings.TrimSuffix(strings.TrimSuffix(server, "/"), "/v1")
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	return NewClientWithResponses(server, append([]ClientOption{WithRequestEditorFn(authorize)}, opts...)...)
}

// Error implements error.
func (p Problem) Error() string { return fmt.Sprintf("%s (%s)", p.Detail, p.Code) }

// problemOf returns the problem that a response is about.
func problemOf(r *http.Response) error {
	var p Problem
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil || p.Code == "" {
		return fmt.Errorf("the server answered %s", r.Status)
	}
	return p
}

// Messages yields messages in order, as the server sends them. The error of a server is a [Problem].
func (c *ClientWithResponses) Messages(
	ctx context.Context, context ContextRef, branch BranchName, params *ListMessagesParams,
) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		r, err := c.ListMessages(ctx, context, branch, params)
		if err != nil {
			yield(Message{}, err)
			return
		}
		defer r.Body.Close() //nolint:errcheck // it is read
		if r.StatusCode != http.StatusOK {
			yield(Message{}, problemOf(r))
			return
		}
		for m, err := range lines[Message](r.Body) {
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Append appends messages, each the object of a framework, as one commit. When it returns without an error, they are
// durable. key is the Idempotency-Key of a retry; it may be empty.
func (c *ClientWithResponses) Append(
	ctx context.Context, context ContextRef, branch BranchName, key string, messages ...json.RawMessage,
) ([]Appended, error) {
	params := &AppendMessagesParams{}
	if key != "" {
		params.IdempotencyKey = &key
	}
	r, err := c.AppendMessagesWithBody(ctx, context, branch, params, "application/x-ndjson", body(messages))
	return appended(r, err)
}

// AppendEnvelopes is [ClientWithResponses.Append] with ids, times, roles and types of the caller.
func (c *ClientWithResponses) AppendEnvelopes(
	ctx context.Context, context ContextRef, branch BranchName, envelopes ...Envelope,
) ([]Appended, error) {
	var messages []json.RawMessage
	for i := range envelopes {
		b, err := marshal(&envelopes[i])
		if err != nil {
			return nil, err
		}
		messages = append(messages, b)
	}
	yes := true
	params := &AppendMessagesParams{Envelope: &yes}
	r, err := c.AppendMessagesWithBody(ctx, context, branch, params, "application/x-ndjson", body(messages))
	return appended(r, err)
}

func body(messages []json.RawMessage) io.Reader {
	var b bytes.Buffer
	for _, m := range messages {
		b.Write(bytes.ReplaceAll(m, []byte{'\n'}, []byte{' '})) // a line break in JSON is between its tokens
		b.WriteByte('\n')
	}
	return &b
}

// marshal keeps the bytes of a raw message: json.Marshal would escape some.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

func appended(r *http.Response, err error) (all []Appended, _ error) {
	if err != nil {
		return nil, err
	}
	defer r.Body.Close() //nolint:errcheck // it is read
	if r.StatusCode != http.StatusCreated {
		return nil, problemOf(r)
	}
	for a, err := range lines[Appended](r.Body) {
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// lines yields the values of JSON Lines of any length.
func lines[T any](r io.Reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := in.ReadBytes('\n')
			var v T
			switch {
			case errors.Is(err, io.EOF) && len(line) == 0:
				return
			case errors.Is(err, io.EOF):
				yield(v, io.ErrUnexpectedEOF)
				return
			case err == nil:
				err = json.Unmarshal(line, &v)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}
