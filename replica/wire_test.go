package replica

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// overPipe returns a device as a peer at the other end of a pipe.
func overPipe(t *testing.T, d *device, l Limits) *Client {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := ServePipe(context.Background(), d.f, l, inR, outW)
		_ = outW.CloseWithError(err)
		done <- err
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return NewClient(NewPipe(outR, inW), uuid.Nil)
}

// TestPipe: a store at the other end of a pipe is a peer like one in a folder. With nothing new, it costs one round trip.
func TestPipe(t *testing.T) {
	a, b := newDevice(t, "ada"), newDevice(t, "bob")
	var ids []uuid.UUID
	for i := range 30 {
		id := a.create(ctxdir.Metadata{Title: strings.Repeat("t", i)})
		a.append(id, "main", "one", strings.Repeat("a long text ", 5000), "three")
		ids = append(ids, id)
	}
	c := overPipe(t, b, Limits{})
	if got := a.sync(c, Options{}); len(got) != 30 {
		t.Errorf("%d contexts", len(got))
	}
	same(t, a, b)
	c.Trips, c.Bytes = 0, 0
	if got := a.sync(c, Options{}); len(got) != 0 || c.Trips != 1 || c.Bytes > 200 {
		t.Errorf("nothing new: %v, %d trips, %d bytes", got, c.Trips, c.Bytes)
	}
	a.append(ids[3], "main", "four")
	b.append(ids[4], "main", "vier")
	c.Trips, c.Bytes = 0, 0
	if got := a.sync(c, Options{}); len(got) != 2 || c.Trips > 6 || c.Bytes > 4<<10 {
		t.Errorf("two messages: %+v, %d trips, %d bytes", got, c.Trips, c.Bytes)
	}
	same(t, a, b)
	if _, err := b.s.Remove(t.Context(), ids[5]); err != nil {
		t.Fatal(err)
	}
	if got := a.sync(c, Options{}); len(got) != 1 || !got[0].Removed {
		t.Errorf("a removal: %+v", got)
	}
	same(t, a, b)
	for i, d := range []*device{a, b} { // what is gone for good does not come back either
		if _, err := d.s.Remove(t.Context(), ids[6+i]); err != nil {
			t.Fatal(err)
		}
		must[[]ctxdir.TrashItem](t)(d.s.Purge(t.Context(), ctxdir.PurgeOptions{All: true}))
	}
	if got := a.sync(c, Options{}); len(got) != 2 || !got[0].Removed || !got[1].Removed {
		t.Errorf("two purges: %+v", got)
	}
	same(t, a, b)
}

// TestReadOnly: a peer that refuses changes says so, and stays as it is.
func TestReadOnly(t *testing.T) {
	a, b := newDevice(t, "ada"), newDevice(t, "bob")
	id := a.create(ctxdir.Metadata{})
	a.append(id, "main", strings.Repeat("a long text ", 100_000))
	_, err := Sync(t.Context(), a.f, overPipe(t, b, Limits{ReadOnly: true}), Options{})
	if !errors.Is(err, ctxdir.ErrReadOnly) || len(b.shown()) > 0 {
		t.Errorf("%v, %v", err, b.shown())
	}
}

// TestSessionLimit: a session stores no more than its limit, in all its calls together.
func TestSessionLimit(t *testing.T) {
	a, b := newDevice(t, "ada"), newDevice(t, "bob")
	id := a.create(ctxdir.Metadata{})
	c := overPipe(t, b, Limits{Bytes: 40_000})
	for range 6 {
		a.append(id, "main", strings.Repeat("a long text ", 700))
		if _, err := Sync(t.Context(), a.f, c, Options{}); errors.Is(err, ctxdir.ErrTooLarge) {
			if n := len(b.shown()); n == 0 || c.Bytes < 30_000 {
				t.Errorf("refused after %d bytes, with %d lines there", c.Bytes, n)
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("nothing was refused")
}

// TestValues: a value of the protocol is the same after it was sent, and each cut of it is an error.
func TestValues(t *testing.T) {
	a := newDevice(t, "ada")
	id := a.create(ctxdir.Metadata{Title: "<odd> & \u2028", Labels: map[string]string{"k": "v"}})
	first := a.append(id, "main", "one", "two")
	if _, err := a.s.Erase(t.Context(), id, first[:1], ctxdir.EraseOptions{}); err != nil {
		t.Fatal(err)
	}
	heads := must[[]Head](t)(a.f.Heads(t.Context(), []HeadRequest{{ID: id}}))
	at := Range{ID: id, Line: heads[0].Branches[0].Line(), To: 2, Sums: true}
	rows := must[[][]Row](t)(a.f.Rows(t.Context(), []Range{at}))
	messages := must[[]Message](t)(a.f.Read(t.Context(), []Range{at}, 1<<20))
	n := uint64(7)
	change := Change{ID: id, Create: &heads[0].Meta, Sequence: &n, Erase: first, Ops: []Op{
		{Kind: OpFork, Branch: "b", From: "main", N: 1}, {Kind: OpAppend, Branch: "b", Messages: messages},
		{Kind: OpMetadata, Meta: &heads[0].Meta},
	}}
	result := Result{Commit: "1-2", Sequence: 3, Branches: heads[0].Branches}
	check(t, heads[0], (*encoder).head, (*decoder).head)
	check(t, rows[0], func(e *encoder, r *[]Row) { e.rows(*r) }, (*decoder).rows)
	check(t, messages[1], (*encoder).message, (*decoder).message)
	check(t, change, (*encoder).change, (*decoder).change)
	check(t, result, (*encoder).result, (*decoder).result)
	failed := Result{Err: &ctxdir.Error{Op: "append", Err: ctxdir.ErrPosition}}
	check(t, failed, (*encoder).result, (*decoder).result)
	var b bytes.Buffer
	e := newEncoder(&b)
	e.result(&failed)
	if err := e.flush(); err != nil {
		t.Fatal(err)
	}
	if got := newDecoder(&b).result(); !errors.Is(got.Err, ctxdir.ErrPosition) || got.Err.Error() != failed.Err.Error() {
		t.Errorf("%v", got.Err)
	}
}

func check[T any](t *testing.T, x T, write func(*encoder, *T), read func(*decoder) T) {
	t.Helper()
	encode := func(x T) []byte {
		var b bytes.Buffer
		e := newEncoder(&b)
		write(e, &x)
		if err := e.flush(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	b := encode(x)
	d := newDecoder(bytes.NewReader(b))
	got := read(d)
	if d.err != nil || !slices.Equal(encode(got), b) {
		t.Errorf("%T: %v\n%q\n%q", x, d.err, b, encode(got))
	}
	for n := range b {
		d := newDecoder(bytes.NewReader(b[:n]))
		if read(d); d.err == nil {
			t.Errorf("%T, cut to %d of %d bytes, is read", x, n, len(b))
		}
	}
}
