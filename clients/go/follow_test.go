package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/clients/go"
)

// TestFollow follows a context from its beginning while it grows, through cut connections, until it is removed.
func TestFollow(t *testing.T) {
	k := newKit(t, api.Options{})
	ctx := t.Context()
	made := ok[*client.CreateContextResponse](k, 201)(k.c.CreateContextWithResponse(ctx, nil, client.NewContext{}))
	id := made.JSON201.ID.String()
	add := func(n int) {
		t.Helper()
		body := fmt.Appendf(nil, `{"role":"user","content":"%d"}`, n)
		if _, err := k.c.Append(ctx, id, "main", fmt.Sprint("follow ", n), body); err != nil {
			t.Fatal(err)
		}
	}
	add(0)
	change := client.Commit{Changes: []client.Change{
		{Op: "append", Messages: &[]client.Envelope{
			{Message: json.RawMessage(`{"role":"user","content":"a"}`)}, {Message: json.RawMessage(`{"role":"user","content":"b"}`)},
		}},
		{Op: "fork", Branch: ptr("alt")},
	}}
	ok[*client.CommitChangesResponse](k, 200)(k.c.CommitChangesWithResponse(ctx, id, change))
	want := []string{"message appended", "message appended", "message appended", "branch created"}
	for range 9 {
		want = append(want, "message appended")
	}
	var got []string
	n := 1
	for e, err := range k.c.Follow(ctx, id, 0) {
		if err != nil {
			var p client.Problem
			if !errors.As(err, &p) || p.Code != "not_found" {
				t.Fatal(err)
			}
			break
		}
		got = append(got, e.Record+" "+e.Event)
		switch {
		case e.More:
		case n < 10:
			if n%3 == 0 {
				k.cut()
			}
			add(n)
			n++
		case len(got) == len(want):
			ok[*client.RemoveContextResponse](k, 200)(k.c.RemoveContextWithResponse(ctx, id))
		}
	}
	want = append(want, "context removed")
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestFollowFails: what cannot be followed says so, and the end of the context of the call ends it.
func TestFollowFails(t *testing.T) {
	k := newKit(t, api.Options{})
	var p client.Problem
	for _, err := range k.c.Follow(t.Context(), "ffffffff", 0) {
		if !errors.As(err, &p) || p.Code != "not_found" {
			t.Errorf("an unknown context: %v", err)
		}
	}
	made := ok[*client.CreateContextResponse](k, 201)(k.c.CreateContextWithResponse(t.Context(), nil, client.NewContext{}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for _, err := range k.c.Follow(ctx, made.JSON201.ID.String(), 0) {
			ended <- err
		}
	}()
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the call: %v", err)
	}
}
