package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/ctxdir/ctxdir"
)

// MediaType is that of requests and answers over HTTP.
const MediaType = "application/octet-stream"

// HTTP is a Caller over the API of a store that is served: a request and its answer are the bodies of one POST.
type HTTP struct {
	url, token string
	client     *http.Client
}

// NewHTTP returns the Caller for the operation of the API at url. The token goes to that server alone: redirects are not
// followed.
func NewHTTP(url, token string) *HTTP {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 0 // the peer may have much to do before it answers
	transport.DisableCompression = true
	return &HTTP{url, token, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Call implements [Caller].
func (h *HTTP) Call(ctx context.Context, request io.Reader) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, request)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", MediaType)
	r.Header.Set("Authorization", "Bearer "+h.token)
	answer, err := h.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK && answer.Header.Get("Content-Type") == MediaType {
		return answer.Body, nil
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, refusal(answer)
}

// refusal is the error of a server that did not answer the call.
func refusal(answer *http.Response) error {
	var p struct {
		Detail string `json:"detail"`
	}
	const most = 64 << 10
	b, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil || json.Unmarshal(b, &p) != nil || p.Detail == "" {
		p.Detail = http.StatusText(answer.StatusCode)
	}
	err = fmt.Errorf("the server answered %d: %s", answer.StatusCode, p.Detail[:min(len(p.Detail), 1000)])
	switch answer.StatusCode {
	case http.StatusForbidden:
		return fmt.Errorf("%w: %w", ctxdir.ErrReadOnly, err)
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", ctxdir.ErrTooLarge, err)
	}
	return err
}

// Close releases the connections.
func (h *HTTP) Close() error {
	h.client.CloseIdleConnections()
	return nil
}
