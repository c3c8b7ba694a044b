package compress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/privacy"
)

// Endpoint is a server with the chat API of OpenAI. Whatever it is asked passes a filter first.
type Endpoint struct {
	URL    string          // such as https://api.example.com/v1, with or without /chat/completions
	Model  string          // empty for the server's own choice
	KeyEnv string          // the environment variable that holds the key; empty for [DefaultKeyEnv]. The key is never stored
	Filter *privacy.Filter // required
	Client *http.Client    // nil for one that follows no redirection and waits [Timeout] for an answer

	// Wait waits between two attempts; nil for a timer.
	Wait func(ctx context.Context, d time.Duration) error
}

// DefaultKeyEnv is the environment variable with the key of an endpoint.
const DefaultKeyEnv = "CTXDIR_REMOTE_KEY"

// Bounds of a request.
const (
	Timeout     = 60 * time.Second // for one attempt
	Attempts    = 3
	MaxRequest  = 256 << 10 // bytes of text
	maxResponse = 1 << 20   // bytes
	firstWait   = 500 * time.Millisecond
	longestWait = 10 * time.Second
)

// ErrRemote is the error of an endpoint that gave no usable answer.
var ErrRemote = errors.New("the remote endpoint failed")

// Ask sends an instruction, which must be a text of the program, and a text, which the filter cleans. It returns the
// answer. It repeats an attempt that failed for a passing reason, and fails with [ErrRemote], or with
// [privacy.ErrPrivate] before anything is sent.
func (e *Endpoint) Ask(ctx context.Context, instruction, text string, maxTokens int) (string, error) {
	if e.Filter == nil {
		return "", fmt.Errorf("%w: no filter is set", privacy.ErrPrivate)
	}
	cleaned, err := e.Filter.Clean(text)
	if err != nil {
		return "", err
	}
	if len(cleaned) > MaxRequest {
		return "", fmt.Errorf("%w: a text of %d bytes exceeds the limit of %d", ErrRemote, len(cleaned), MaxRequest)
	}
	target, key, err := e.target()
	if err != nil {
		return "", err
	}
	request, err := json.Marshal(chatRequest{
		Model: e.Model, MaxTokens: maxTokens, Messages: []chatMessage{{"system", instruction}, {"user", cleaned}},
	})
	if err != nil {
		return "", err
	}
	pause := firstWait
	for attempt := 1; ; attempt++ {
		answer, again, err := e.post(ctx, target, key, request)
		if err == nil || again < 0 || attempt == Attempts {
			return answer, err
		}
		if err := e.wait(ctx, min(max(again, pause), longestWait)); err != nil {
			return "", err
		}
		pause = 2*pause + rand.N(pause/2)
	}
}

type chatRequest struct {
	Model       string        `json:"model,omitempty"`
	Messages    []chatMessage `json:"messages"`
	MaxTokens   int           `json:"max_tokens,omitempty"`
	Temperature float64       `json:"temperature"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// target returns the address and the key. A key does not travel unencrypted, except on this machine.
func (e *Endpoint) target() (target, key string, err error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", fmt.Errorf("%w: %q is not the URL of a server", ErrRemote, e.URL)
	}
	name := e.KeyEnv
	if name == "" {
		name = DefaultKeyEnv
	}
	key = os.Getenv(name)
	if u.User != nil {
		return "", "", fmt.Errorf("%w: put the key in $%s, not in the address", ErrRemote, name)
	}
	ip := net.ParseIP(u.Hostname())
	if key != "" && u.Scheme == "http" && u.Hostname() != "localhost" && !ip.IsLoopback() {
		return "", "", fmt.Errorf("%w: the key requires an https URL", ErrRemote)
	}
	if !strings.HasSuffix(u.Path, "/chat/completions") {
		u = u.JoinPath("chat", "completions")
	}
	return u.String(), key, nil
}

var defaultClient = &http.Client{
	Timeout:       Timeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// post makes one attempt. After an error, again is how long to wait for the next one, negative for never.
func (e *Endpoint) post(ctx context.Context, target, key string, request []byte) (answer string, again time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(request))
	if err != nil {
		return "", -1, fmt.Errorf("%w: %w", ErrRemote, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	client := e.Client
	if client == nil {
		client = defaultClient
	}
	response, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return "", -1, ctx.Err()
		}
		var of *url.Error
		if errors.As(err, &of) { // without the address, which the user has typed
			err = of.Err
		}
		return "", 0, fmt.Errorf("%w: %w", ErrRemote, err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	switch code := response.StatusCode; {
	case err != nil:
		return "", 0, fmt.Errorf("%w: %w", ErrRemote, err)
	case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
		return "", retryAfter(response.Header.Get("Retry-After")), fmt.Errorf("%w: status %d", ErrRemote, code)
	case code != http.StatusOK:
		return "", -1, fmt.Errorf("%w: status %d", ErrRemote, code)
	case len(body) > maxResponse:
		return "", -1, fmt.Errorf("%w: the response exceeds the limit of %d bytes", ErrRemote, maxResponse)
	}
	var reply struct {
		Choices []struct {
			Message chatMessage `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &reply) != nil || len(reply.Choices) == 0 || strings.TrimSpace(reply.Choices[0].Message.Content) == "" {
		return "", -1, fmt.Errorf("%w: the response is not a chat completion", ErrRemote)
	}
	return printable(reply.Choices[0].Message.Content), 0, nil
}

// retryAfter is the wait that a server asks for, in seconds.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.ParseUint(header, 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// printable returns a text without control characters but newlines, in valid UTF-8.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "")))
}

func (e *Endpoint) wait(ctx context.Context, d time.Duration) error {
	if e.Wait != nil {
		return e.Wait(ctx, d)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
