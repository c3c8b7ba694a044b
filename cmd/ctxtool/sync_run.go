package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
)

type syncedRecord struct {
	Record   string   `json:"record"`
	Context  string   `json:"context"`
	Pushed   int64    `json:"pushed"`
	Pulled   int64    `json:"pulled"`
	Branches int      `json:"branches"`
	Diverged []string `json:"diverged"`
	Healed   int64    `json:"healed"`
	Erased   int64    `json:"erased"`
	Removed  bool     `json:"removed,omitempty"`
	Bytes    int64    `json:"bytes"`
	Trips    int64    `json:"trips"`
}

type syncSummary struct {
	Record      string `json:"record"`
	Contexts    int    `json:"contexts"`
	Messages    int64  `json:"messages"`
	Bytes       int64  `json:"bytes"`
	Trips       int64  `json:"trips"`
	Unconfirmed int64  `json:"unconfirmed"`
	Kept        int    `json:"kept,omitempty"` // contexts in local mode that were not pushed
}

// sync brings the store together with a peer. With quiet, nothing is said if nothing happened.
func (a *app) sync(ctx context.Context, s *ctxdir.Store, c *connection, o replica.Options, quiet bool) error {
	var all, told costs
	all.begin(c.peer)
	told.begin(c.peer)
	var failed error
	var short shortIDs
	bar := a.newProgress("Syncing")
	o.Progress = func(done, of int) { bar.Items("contexts", done, of) }
	o.Report = func(r replica.Synced) {
		if r.Err != nil {
			bar.Clear()
			a.warn(errorRecord{Error: fmt.Sprintf("context %s: %v", r.ID, r.Err)})
			return
		}
		bytes, trips := told.since()
		bar.Clear()
		if short == nil {
			short = shortIDsIn(s)
		}
		x := syncedRecord{
			"synced", r.ID.String(), r.Pushed, r.Pulled, r.Branches, append([]string{}, r.Diverged...), r.Healed, r.Erased, r.Removed, bytes, trips,
		}
		if err := a.result(x, "%s  %s", short.of(r.ID), syncedText(&r)); err != nil && failed == nil {
			failed = err
		}
	}
	total, err := replica.Sync(ctx, replica.NewFolder(s), c.peer, o)
	bar.Clear()
	if err == nil {
		err = errors.Join(failed, a.remember(ctx, s, c))
	}
	if err != nil {
		return err
	}
	summary := syncSummary{
		Record: "summary", Contexts: total.Contexts, Messages: total.Messages, Unconfirmed: total.Unconfirmed, Kept: total.Kept,
	}
	summary.Bytes, summary.Trips = all.since()
	switch {
	case quiet && total == (replica.Total{}):
	case a.json:
		if err := a.result(summary, ""); err != nil {
			return err
		}
	case total.Contexts == 0 && total.Failed+total.Kept == 0:
		a.note("already the same on both sides")
	}
	if total.Kept > 0 && !quiet {
		a.note("not pushed, in local mode: %s (see ctxtool mode)", plain.Count(total.Kept, "context"))
	}
	if total.Unconfirmed > 0 {
		a.warn(errorRecord{Error: fmt.Sprintf("the peer has not confirmed %s", plain.Count(total.Unconfirmed, "erasure"))})
	}
	if total.Failed > 0 {
		return problems("", "failed to bring %s together", plain.Count(int64(total.Failed), "context"))
	}
	return nil
}

// syncedText says what happened with a context.
func syncedText(r *replica.Synced) string {
	var parts []string
	add := func(n int64, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	add(r.Pushed, "%d pushed")
	add(r.Pulled, "%d pulled")
	if r.Branches > 0 {
		parts = append(parts, plain.Count(r.Branches, "branch")+" changed")
	}
	add(r.Healed, "%d restored")
	add(r.Erased, "%d erased")
	if r.Removed {
		parts = append(parts, "moved to the trash")
	}
	for _, name := range r.Diverged {
		parts = append(parts, "both sides went on: local messages are on "+name)
	}
	if len(parts) == 0 {
		return "metadata"
	}
	return strings.Join(parts, ", ")
}

// costs are what a peer elsewhere has cost since a call.
type costs struct {
	client       *replica.Client
	bytes, trips int64
}

func (c *costs) begin(p replica.Peer) {
	c.client, _ = p.(*replica.Client)
	c.since()
}

// since returns what the peer has cost since the last call.
func (c *costs) since() (bytes, trips int64) {
	if c.client == nil {
		return 0, 0
	}
	bytes, trips = c.client.Bytes-c.bytes, c.client.Trips-c.trips
	c.bytes, c.trips = c.client.Bytes, c.client.Trips
	return bytes, trips
}

// unreached says that a store was passed over, and what it does not know yet.
func (a *app) unreached(ctx context.Context, s *ctxdir.Store, r *ctxdir.Remote, err error) {
	name := "remote " + r.Name
	if r.Name == "" {
		name = r.Peer
	}
	a.warn(errorRecord{Error: fmt.Sprintf("%s: %v", name, err)})
	if r.Store == uuid.Nil {
		return
	}
	if n, err := replica.Unconfirmed(ctx, replica.NewFolder(s), r.Store); err == nil && n > 0 {
		a.warn(errorRecord{Error: fmt.Sprintf("%s has not confirmed %s", name, plain.Count(n, "erasure"))})
	}
}
