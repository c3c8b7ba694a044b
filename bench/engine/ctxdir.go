package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

var ctxdirEngine = &Engine{
	Name: Ours,
	About: "this library with its defaults, except that long texts stay in their messages, as with the other engines. " +
		"Message files are made when appends pause, or after 250 ms. A log is sealed at 1 MiB; at 64 KiB when appends " +
		"pause, and by Close",
	Open: func(dir string, d Durability) (Store, error) {
		return openCtxdir(dir, d, ctxdir.Options{TextThreshold: -1})
	},
}

// archivedEngine is ours with archived messages: a further lane of rows that read.
var archivedEngine = &Engine{
	Name:  Archived,
	About: "this library, after an archive of the context: no message files, compressed segments",
	Open:  ctxdirEngine.Open,
	Finish: func(dir string) error {
		s, err := ctxdir.Open(dir)
		if err != nil {
			return err
		}
		_, err = s.Archive(context.Background(), ctxdir.ArchiveOptions{All: true})
		return errors.Join(err, s.Close())
	},
}

// withBlobs stores texts of 16 KiB or more in blobs, which is the default. Rows that read have it as a further lane.
var withBlobs = &Engine{
	Name:  Blobs,
	About: "this library with its defaults: texts of 16 KiB or more are in blobs of their own",
	Open:  func(dir string, d Durability) (Store, error) { return openCtxdir(dir, d) },
}

func openCtxdir(dir string, d Durability, opts ...ctxdir.Options) (Store, error) {
	if d == Relaxed {
		opts = append(opts, ctxdir.Options{RelaxedDurability: true})
	}
	s, err := ctxdir.Open(dir, opts...)
	if errors.Is(err, ctxdir.ErrNoStore) {
		s, err = ctxdir.Init(dir, opts...)
	}
	if err != nil {
		return nil, err
	}
	return ctxdirStore{s, dir}, nil
}

type ctxdirStore struct {
	s   *ctxdir.Store
	dir string
}

func (s ctxdirStore) Create(title string) (string, error) {
	c, err := s.s.Create(context.Background(), ctxdir.Metadata{Title: title})
	if err != nil {
		return "", err
	}
	return c.ID().String(), c.Close()
}

func (s ctxdirStore) Context(id, branch string) (Context, error) {
	u, err := uuid.Parse(id)
	if err != nil {
		return nil, err
	}
	c, err := s.s.Open(context.Background(), u)
	if err != nil {
		return nil, err
	}
	b, err := c.Branch(branch)
	if err != nil {
		return nil, err
	}
	return &ctxdirContext{c: c, b: b, sealLock: filepath.Join(s.dir, "locks", id+".seal")}, nil
}

func (s ctxdirStore) List() ([]Summary, error) { return s.list(ctxdir.ListOptions{}) }

func (s ctxdirStore) list(o ctxdir.ListOptions) ([]Summary, error) {
	var out []Summary
	for sum, err := range s.s.List(context.Background(), o) {
		if err == nil {
			err = sum.Problem
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Summary{ID: sum.ID.String(), Title: sum.Title, Messages: sum.Messages, Bytes: sum.Bytes})
	}
	return out, nil
}

func (s ctxdirStore) Close() error { return s.s.Close() }

type ctxdirContext struct {
	c        *ctxdir.Context
	b        *ctxdir.Branch
	sealLock string
}

func (c *ctxdirContext) Branches() ([]BranchInfo, error) {
	all, err := c.c.Branches(context.Background())
	out := make([]BranchInfo, 0, len(all))
	for _, b := range all {
		out = append(out, BranchInfo{b.Name, b.Messages, b.Bytes})
	}
	return out, err
}

func draft(m Message) ctxdir.Draft {
	return ctxdir.Draft{ID: m.ID, Role: m.Role, Type: m.Type, Body: m.Body}
}

func (c *ctxdirContext) Append(m Message) error {
	_, err := c.b.Append(context.Background(), draft(m))
	return err
}

func (c *ctxdirContext) AppendBatch(ms []Message) error {
	drafts := make([]ctxdir.Draft, len(ms))
	for i, m := range ms {
		drafts[i] = draft(m)
	}
	results, err := c.b.AppendBatch(context.Background(), drafts)
	for i := 0; err == nil && i < len(results); i++ {
		err = results[i].Err
	}
	return err
}

func storedMessage(m *ctxdir.Message) (Stored, error) {
	if m.Unavailable != nil {
		return Stored{}, m.Unavailable
	}
	body, err := m.Body(context.Background())
	return Stored{m.ID, m.Position, body}, err
}

func storedMessages(ms []*ctxdir.Message, err error) ([]Stored, error) {
	out := make([]Stored, len(ms))
	for i, m := range ms {
		if err == nil {
			out[i], err = storedMessage(m)
		}
	}
	return out, err
}

func (c *ctxdirContext) Last(n int) ([]Stored, error) {
	return storedMessages(c.b.Last(context.Background(), n))
}

func (c *ctxdirContext) Range(from, to int64) ([]Stored, error) {
	return storedMessages(c.b.Range(context.Background(), from, to))
}

func (c *ctxdirContext) All(f func(Stored) error) error {
	for m, err := range c.b.Messages(context.Background(), 0, ctxdir.End) {
		if err != nil {
			return err
		}
		s, err := storedMessage(m)
		if err == nil {
			err = f(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *ctxdirContext) ByID(id uuid.UUID) (Stored, error) {
	m, err := c.b.Message(context.Background(), id)
	if err != nil {
		return Stored{}, err
	}
	return storedMessage(m)
}

func (c *ctxdirContext) Fork(name string, at int64) error {
	_, err := c.b.Fork(context.Background(), name, at)
	return err
}

// Seal seals the logs now.
func (c *ctxdirContext) Seal() error { return c.c.Admin().Seal(context.Background()) }

// Settle waits for the message files, and for a running seal, by its lock: the next engine's turn must not pay for them.
func (c *ctxdirContext) Settle() error {
	if err := c.c.Flush(context.Background()); err != nil {
		return err
	}
	time.Sleep(time.Millisecond) // a seal that just began takes its lock in this time
	f, err := os.OpenFile(c.sealLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lockFile(f); err != nil {
		return fmt.Errorf("waiting for the seal: %w", err)
	}
	return nil
}

func (c *ctxdirContext) Close() error { return c.c.Close() }
