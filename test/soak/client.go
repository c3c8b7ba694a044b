package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"
)

// client is one of the server at an address.
type client struct{ at string }

// errGone is the answer about what others removed or erased.
var errGone = errors.New("gone")

// look lists the contexts, and looks at each as a page does. Then it searches.
func (c *client) look(ctx context.Context) error {
	var list struct{ Contexts []struct{ ID string } }
	if err := c.document(ctx, "/contexts?limit=1000", &list); err != nil {
		return err
	}
	for _, x := range list.Contexts {
		if err := c.context(ctx, "/contexts/"+x.ID); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	for _, q := range queries {
		var found struct{ Hits []json.RawMessage }
		if err := c.document(ctx, "/search?q="+url.QueryEscape(q), &found); err != nil {
			return err
		}
		did.Add(int64(len(found.Hits)))
	}
	return nil
}

// context reads the end of a context, and begins to follow it a few commits earlier.
func (c *client) context(ctx context.Context, path string) error {
	var x struct {
		Branch   string `json:"active_branch"`
		Sequence uint64
	}
	if err := c.document(ctx, path, &x); err != nil {
		return err
	}
	messages, err := c.get(ctx, path+"/branches/"+url.PathEscape(x.Branch)+"/messages?last=20")
	if err != nil {
		return err
	}
	for line := range bytes.Lines(messages) {
		if did.Add(1); !json.Valid(line) {
			return fmt.Errorf("%s: a message is not JSON: %.100q", path, line)
		}
	}
	before := x.Sequence - min(x.Sequence, 3)
	return c.events(ctx, path+"/events?after="+strconv.FormatUint(before, 10), 1) // and leaves while the others come
}

// follow follows the store. A server may tell a follower to begin again.
func (c *client) follow(ctx context.Context) error {
	for {
		if err := c.events(ctx, "/events", -1); err != nil {
			return err
		}
	}
}

// The status codes of a socket that say to connect again, or that the context is gone: see docs/API.md.
const (
	closeSlow    = websocket.StatusCode(4001)
	closeRemoved = websocket.StatusCode(4002)
)

// events reads so many events, or all.
func (c *client) events(ctx context.Context, path string, most int) error {
	header := http.Header{"Authorization": {"Bearer " + token}}
	conn, resp, err := websocket.Dial(ctx, "ws://"+c.at+"/v1"+path, &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // Dial's
	if err != nil {
		if resp != nil && resp.StatusCode == http.StatusNotFound {
			return errGone
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	defer conn.CloseNow() //nolint:errcheck // it only reads
	conn.SetReadLimit(-1)
	for ; most != 0; most-- {
		_, line, err := conn.Read(ctx)
		switch websocket.CloseStatus(err) {
		case closeSlow, websocket.StatusServiceRestart:
			return nil
		case closeRemoved:
			return errGone
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if did.Add(1); !json.Valid(line) {
			return fmt.Errorf("%s: an event is not JSON: %.100q", path, line)
		}
	}
	return nil
}

func (c *client) document(ctx context.Context, path string, into any) error {
	body, err := c.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.at+"/v1"+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		return nil, errGone
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s: %.300s", path, resp.Status, body)
	}
	return body, nil
}
