package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/ctxdir/ctxdir/replica/peertest"
	"github.com/google/uuid"
)

func (k *kit) peer(token string) *replica.Client {
	h := replica.NewHTTP("http://"+k.host+"/v1/replica", token)
	k.Cleanup(func() { _ = h.Close() })
	return replica.NewClient(h, uuid.Nil)
}

func TestServerIsAPeer(t *testing.T) {
	peertest.Test(t, func(t *testing.T) replica.Peer { return newKit(t, api.Options{}).peer(token) })
}

// TestReplicaRefused: a server refuses a call without the token, one that changes a store that is read-only, and one that is
// no call.
func TestReplicaRefused(t *testing.T) {
	k := newKit(t, api.Options{ReadOnly: true})
	if _, err := k.peer("another").Contexts(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("another token: %v", err)
	}
	p := k.peer(token)
	if all, err := p.Contexts(t.Context(), nil); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	create := replica.Change{ID: uuid.New(), Create: &replica.Meta{}}
	if _, err := p.Apply(t.Context(), []replica.Change{create}, nil); !errors.Is(err, ctxdir.ErrReadOnly) {
		t.Errorf("%v", err)
	}
	for what, send := range map[string]struct{ media, body string }{
		"no media type": {"", "\x01\x00"}, "JSON": {"application/json", "{}"}, "nothing": {replica.MediaType, ""},
		"no call": {replica.MediaType, "\xff"}, "a call that is cut": {replica.MediaType, "\x03\x05"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+k.host+"/v1/replica", strings.NewReader(send.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", send.media)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode >= 500 {
			t.Errorf("%s: %d", what, answer.StatusCode)
		}
	}
}

// TestSyncWithServer: a store and a server are brought together, and a refusal is an error that callers distinguish.
func TestSyncWithServer(t *testing.T) {
	k := newKit(t, api.Options{})
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := k.store.Create(t.Context(), ctxdir.Metadata{Title: "A walk"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := json.RawMessage(`{"role":"user","content":"` + strings.Repeat("a long text ", 10_000) + `"}`)
	if _, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: body}); err != nil {
		t.Fatal(err)
	}
	p := k.peer(token)
	total, err := replica.Sync(t.Context(), replica.NewFolder(s), p, replica.Options{})
	if err != nil || total.Messages != 1 || total.Failed != 0 {
		t.Fatalf("%+v, %v", total, err)
	}
	err = s.Use(t.Context(), c.ID(), func(c *ctxdir.Context) error {
		all, err := c.Active().Last(t.Context(), 1)
		if err != nil {
			return err
		}
		got, err := all[0].Body(t.Context())
		if string(got) != string(body) {
			t.Errorf("%.80s", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	p.Trips, p.Bytes = 0, 0
	if total, err = replica.Sync(t.Context(), replica.NewFolder(s), p, replica.Options{}); err != nil || total.Contexts != 0 || p.Trips != 1 {
		t.Errorf("again: %+v, %v, %d trips, %d bytes", total, err, p.Trips, p.Bytes)
	}
}
