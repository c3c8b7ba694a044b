package rows

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
)

type fixtureKey struct {
	engine string
	n      int64
}

// Fixture is a context that was filled before it is measured. Its store is closed between rows.
type Fixture struct {
	Engine *engine.Engine
	Dir    string
	ID     string // of the context
	N      int64  // messages in it
	Stream *corpus.Stream

	store engine.Store
	all   []string // ids of all contexts, in a fixture of many
	c     engine.Context
}

// tail is how many messages are appended one by one at the end of a fixture, as an agent would: the newest ones
// then lie where an engine keeps its newest ones.
const tail = 200

// seed is of the conversation of every fixture: engines hold the same messages under the same ids.
const seed = 7

// Shared returns a context of n messages, built once for all rows. Rows append to it, so it may have some more.
func (e *Env) Shared(eng *engine.Engine, n int64) (*Fixture, error) {
	k := fixtureKey{eng.Name, n}
	if f := e.shared[k]; f != nil {
		return f, nil
	}
	f, err := e.Fresh(eng, n)
	if err != nil {
		return nil, err
	}
	if e.shared == nil {
		e.shared = map[fixtureKey]*Fixture{}
	}
	e.shared[k] = f
	return f, nil
}

// Unchanged is Shared for a row that compares reads: no row may have appended to the context.
func (e *Env) Unchanged(eng *engine.Engine, n int64) (*Fixture, error) {
	f, err := e.Shared(eng, n)
	if err == nil && f.N != n {
		err = fmt.Errorf("the context of %s with %d messages has %d by now: run the row earlier", eng.Name, n, f.N)
	}
	return f, err
}

// Fresh returns a context of n messages in a store of its own.
func (e *Env) Fresh(eng *engine.Engine, n int64) (*Fixture, error) {
	dir, err := e.folder(slug(eng.Name))
	if err != nil {
		return nil, err
	}
	f := &Fixture{Engine: eng, Dir: dir, Stream: e.Corpus.Stream(seed)}
	start := time.Now()
	if err := f.Open(engine.Relaxed); err != nil {
		return nil, err
	}
	last := int64(tail)
	if eng.Largest > 0 {
		last = 0 // it keeps the newest ones where it keeps all, and rewrites all for each
	}
	err = f.fill(max(n-last, 0))
	for f.N < n && err == nil {
		err = f.Append()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && eng.Finish != nil {
		err = eng.Finish(f.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("filling %s with %d messages: %w", eng.Name, n, err)
	}
	took := time.Since(start)
	e.Builds = append(e.Builds, Build{eng.Name, n, took})
	if took > 5*time.Second {
		e.Logf("  %s: %s messages built in %.0f s", eng.Name, Count(n), took.Seconds())
	}
	return f, nil
}

// fill makes a new context in the store and fills it.
func (f *Fixture) fill(n int64) error {
	var err error
	if f.ID, err = f.store.Create("benchmark"); err != nil {
		return err
	}
	if f.c, err = f.store.Context(f.ID, engine.Main); err != nil {
		return err
	}
	if err := engine.Build(f.c, n, f.Message); err != nil {
		return err
	}
	if sealer, ok := f.c.(interface{ Seal() error }); ok {
		if err := sealer.Seal(); err != nil {
			return err
		}
	}
	f.N = n
	return nil
}

// Message is message i of the conversation.
func (f *Fixture) Message(i int64) engine.Message { return message(f.Stream, i) }

func message(s *corpus.Stream, i int64) engine.Message {
	role, kind := s.Role(i)
	return engine.Message{ID: s.ID(i), Role: role, Type: kind, Body: s.Body(i)}
}

// Append appends the next message of the conversation.
func (f *Fixture) Append() error {
	err := f.c.Append(f.Message(f.N))
	if err == nil {
		f.N++
	}
	return err
}

// Open opens store and, once there is one, the context, unless they are open.
func (f *Fixture) Open(d engine.Durability) error {
	var err error
	if f.store == nil {
		if f.store, err = f.Engine.Open(f.Dir, d); err != nil {
			return err
		}
	}
	if f.c == nil && f.ID != "" {
		f.c, err = f.store.Context(f.ID, engine.Main)
	}
	return err
}

// CloseContext closes the context only.
func (f *Fixture) CloseContext() error {
	if f.c == nil {
		return nil
	}
	err := f.c.Close()
	f.c = nil
	return err
}

// Close closes context and store.
func (f *Fixture) Close() error {
	err := f.CloseContext()
	if f.store != nil {
		if cerr := f.store.Close(); err == nil {
			err = cerr
		}
		f.store = nil
	}
	return err
}

// Settle waits for what goes on in the background.
func (f *Fixture) Settle() error {
	if f.c == nil {
		return nil
	}
	return f.c.Settle()
}

// decode decodes messages as every engine's are.
func decode(ms []engine.Stored) error {
	for _, m := range ms {
		if _, err := corpus.Decode(m.Body); err != nil {
			return err
		}
	}
	return nil
}

// messageFile is the path of a message file of ours.
func (f *Fixture) messageFile(i int64) string {
	return filepath.Join(f.Dir, f.ID, "messages", "branch-"+engine.Main, f.Stream.ID(i).String()+".json")
}
