// Package chat is the side of the server in package exchange: it gets the context of a request, from the agent or from the
// store of the user, asks a model, and sends the answer as it arrives.
//
// In local mode it keeps the number of tokens. Contexts and answers are in memory only, for some minutes: so only what is new
// has to travel, and a repeated request gets the same answer.
package chat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/exchange"
)

// Model is a server with the chat API of OpenAI.
type Model struct {
	URL    string       // such as https://api.example.com/v1, with or without /chat/completions
	Name   string       // of the model; empty for the server's own choice
	Key    string       // empty for none
	Client *http.Client // nil for one that follows no redirection
}

// Prompt is a message for a model.
type Prompt struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ErrModel is the error of a model that gave no usable answer. It has nothing of what was asked or answered.
var ErrModel = errors.New("the model endpoint failed")

const (
	modelPatience = 60 * time.Second // for the header of an answer
	maxLine       = 256 << 10        // bytes of one event
	maxEvents     = 64 << 20         // bytes of all events
)

var modelClient = &http.Client{
	Transport: func() http.RoundTripper {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout, t.MaxIdleConnsPerHost = modelPatience, 32
		return t
	}(),
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Check returns an error unless the URL can be used. A key does not travel unencrypted, except on this machine.
func (m *Model) Check() error {
	u, err := url.Parse(m.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the address of the model is not the URL of a server")
	case u.User != nil:
		return errors.New("the key of the model does not belong into its URL")
	case m.Key != "" && u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback():
		return errors.New("the key of the model needs an https URL")
	}
	return nil
}

func (m *Model) target() (string, error) {
	if err := m.Check(); err != nil {
		return "", err
	}
	u, err := url.Parse(m.URL)
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(u.Path, "/chat/completions") {
		u = u.JoinPath("chat", "completions")
	}
	return u.String(), nil
}

type completionRequest struct {
	Model         string         `json:"model,omitempty"`
	Messages      []Prompt       `json:"messages"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options"`
}

// event is a piece of a streamed completion.
type event struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *exchange.Usage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// Stream asks the model, and hands over each piece of the answer. usage is nil if the model does not say it. The error wraps
// [ErrModel].
func (m *Model) Stream(ctx context.Context, messages []Prompt, piece func(text string) error) (usage *exchange.Usage, err error) {
	target, err := m.target()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(completionRequest{m.Name, messages, true, map[string]any{"include_usage": true}})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	if m.Key != "" {
		r.Header.Set("Authorization", "Bearer "+m.Key)
	}
	client := m.Client
	if client == nil {
		client = modelClient
	}
	resp, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: it does not answer", ErrModel)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: status %d", ErrModel, resp.StatusCode)
	}
	return events(io.LimitReader(resp.Body, maxEvents), piece)
}

// events reads server-sent events up to the end mark.
func events(r io.Reader, piece func(text string) error) (usage *exchange.Usage, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	size := 0
	for lines.Scan() {
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !is {
			continue
		}
		if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
			if size == 0 {
				return nil, fmt.Errorf("%w: the answer is empty", ErrModel)
			}
			return usage, nil
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil || e.Error != nil && string(e.Error) != "null" {
			return nil, fmt.Errorf("%w: the answer is not a chat completion", ErrModel)
		}
		if u := e.Usage; u != nil && u.Prompt >= 0 && u.Completion >= 0 {
			usage = u
		}
		for _, c := range e.Choices {
			if size += len(c.Delta.Content); size > exchange.MaxAnswer {
				return nil, fmt.Errorf("%w: the answer exceeds the limit of %d bytes", ErrModel, exchange.MaxAnswer)
			}
			if c.Delta.Content == "" {
				continue
			}
			if err := piece(c.Delta.Content); err != nil {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("%w: the answer is not complete", ErrModel)
}
