package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

var boltEngine = &Engine{
	Name: Bolt,
	About: "one database per store. One bucket per branch maps positions to messages, and one per context maps ids to positions. " +
		"The free list is a map. Append-only buckets fill their pages. Concurrent appends use DB.Batch",
	Module: "go.etcd.io/bbolt",
	Alone:  "it locks its file for one process",
	Open:   openBolt,
}

// Buckets: contexts/ID/{title, branches/NAME -> parent, base; ids/ID -> branch, position; b:NAME/POSITION -> message}.
var (
	boltRoot     = []byte("contexts")
	boltTitle    = []byte("title")
	boltBranches = []byte("branches")
	boltIDs      = []byte("ids")
)

func boltBranch(name string) []byte { return []byte("b:" + name) }

func openBolt(dir string, d Durability) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// Not NoFreelistSync: appending would gain little, and opening would read the whole file.
	db, err := bolt.Open(filepath.Join(dir, "store.bolt"), 0o600, &bolt.Options{
		FreelistType: bolt.FreelistMapType, NoSync: d == Relaxed,
	})
	if err != nil {
		return nil, err
	}
	return &boltStore{db}, nil
}

type boltStore struct{ db *bolt.DB }

func (s *boltStore) Create(title string) (string, error) {
	id := uuid.NewString()
	return id, s.db.Update(func(tx *bolt.Tx) error {
		root, err := tx.CreateBucketIfNotExists(boltRoot)
		if err != nil {
			return err
		}
		b, err := root.CreateBucket([]byte(id))
		if err != nil {
			return err
		}
		if _, err := b.CreateBucket(boltIDs); err != nil {
			return err
		}
		if _, err := b.CreateBucket(boltBranches); err != nil {
			return err
		}
		return errors.Join(b.Put(boltTitle, []byte(title)), addBoltBranch(b, Main, "", 0))
	})
}

func addBoltBranch(b *bolt.Bucket, name, parent string, base int64) error {
	if _, err := b.CreateBucket(boltBranch(name)); err != nil {
		return err
	}
	return b.Bucket(boltBranches).Put([]byte(name), append(position(base), parent...))
}

func position(p int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(p)) }

func (s *boltStore) List() ([]Summary, error) {
	var out []Summary
	return out, s.db.View(func(tx *bolt.Tx) error {
		root := tx.Bucket(boltRoot)
		if root == nil {
			return nil
		}
		return root.ForEachBucket(func(k []byte) error {
			b := root.Bucket(k)
			info := boltInfo(b, Main)
			out = append(out, Summary{ID: string(k), Title: string(b.Get(boltTitle)), Messages: info.Messages, Bytes: info.Bytes})
			return nil
		})
	})
}

// boltInfo reads a branch's length and size from its newest message.
func boltInfo(b *bolt.Bucket, name string) BranchInfo {
	info := BranchInfo{Name: name}
	if v := b.Bucket(boltBranches).Get([]byte(name)); v != nil {
		info.Messages = int64(binary.BigEndian.Uint64(v))
	}
	if k, v := b.Bucket(boltBranch(name)).Cursor().Last(); k != nil {
		info.Messages = int64(binary.BigEndian.Uint64(k)) + 1
		info.Bytes = int64(binary.BigEndian.Uint64(v))
	}
	return info
}

func (s *boltStore) Close() error { return s.db.Close() }

func (s *boltStore) Context(id, branch string) (Context, error) {
	c := &boltContext{db: s.db, id: []byte(id), name: branch}
	return c, s.db.View(func(tx *bolt.Tx) error {
		b := c.bucket(tx)
		if b == nil {
			return fmt.Errorf("no context %s", id)
		}
		to := int64(math.MaxInt64)
		for name := branch; ; {
			v := b.Bucket(boltBranches).Get([]byte(name))
			if v == nil {
				return fmt.Errorf("no branch %s", name)
			}
			base, parent := int64(binary.BigEndian.Uint64(v)), string(v[8:])
			c.spans = append([]boltSpan{{name, base, to}}, c.spans...)
			if parent == "" {
				return nil
			}
			name, to = parent, min(base, to)
		}
	})
}

type boltSpan struct {
	branch   string
	from, to int64
}

type boltContext struct {
	db    *bolt.DB
	id    []byte
	name  string
	spans []boltSpan // oldest first; the last one is the branch's own
}

func (c *boltContext) bucket(tx *bolt.Tx) *bolt.Bucket {
	root := tx.Bucket(boltRoot)
	if root == nil {
		return nil
	}
	return root.Bucket(c.id)
}

func (c *boltContext) Branches() ([]BranchInfo, error) {
	var out []BranchInfo
	return out, c.db.View(func(tx *bolt.Tx) error {
		b := c.bucket(tx)
		return b.Bucket(boltBranches).ForEach(func(k, _ []byte) error {
			out = append(out, boltInfo(b, string(k)))
			return nil
		})
	})
}

// put stores a message: bytes up to and with it, id, body.
func (c *boltContext) put(b, own, ids *bolt.Bucket, m Message) error {
	info := boltInfo(b, c.name)
	at := position(info.Messages)
	v := binary.BigEndian.AppendUint64(make([]byte, 0, 24+len(m.Body)), uint64(info.Bytes)+uint64(len(m.Body)))
	v = append(append(v, m.ID[:]...), m.Body...)
	return errors.Join(own.Put(at, v), ids.Put(m.ID[:], append(at, c.name...)))
}

func (c *boltContext) putAll(tx *bolt.Tx, ms []Message) error {
	b := c.bucket(tx)
	own, ids := b.Bucket(boltBranch(c.name)), b.Bucket(boltIDs)
	own.FillPercent, ids.FillPercent = 1, 0.9
	for _, m := range ms {
		if err := c.put(b, own, ids, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *boltContext) Append(m Message) error {
	return c.db.Update(func(tx *bolt.Tx) error { return c.putAll(tx, []Message{m}) })
}

// AppendShared is Append for one of several goroutines.
func (c *boltContext) AppendShared(m Message, goroutines int) error {
	if c.db.MaxBatchSize != goroutines {
		c.db.MaxBatchSize = goroutines
	}
	return c.db.Batch(func(tx *bolt.Tx) error { return c.putAll(tx, []Message{m}) })
}

func (c *boltContext) AppendBatch(ms []Message) error {
	return c.db.Update(func(tx *bolt.Tx) error { return c.putAll(tx, ms) })
}

func storedBolt(k, v []byte) Stored {
	return Stored{ID: uuid.UUID(v[8:24]), Position: int64(binary.BigEndian.Uint64(k)), Body: v[24:]}
}

func (c *boltContext) each(from, to int64, f func(Stored) error) error {
	return c.db.View(func(tx *bolt.Tx) error {
		b := c.bucket(tx)
		for _, s := range c.spans {
			cur := b.Bucket(boltBranch(s.branch)).Cursor()
			for k, v := cur.Seek(position(max(from, s.from))); k != nil; k, v = cur.Next() {
				m := storedBolt(k, v)
				if m.Position >= min(to, s.to) {
					break
				}
				if err := f(m); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (c *boltContext) Last(n int) ([]Stored, error) {
	var out []Stored
	err := c.db.View(func(tx *bolt.Tx) error {
		b := c.bucket(tx)
		for _, s := range slices.Backward(c.spans) {
			cur := b.Bucket(boltBranch(s.branch)).Cursor()
			k, v := cur.Last()
			if s.to != math.MaxInt64 {
				cur.Seek(position(s.to))
				k, v = cur.Prev()
			}
			for ; k != nil && len(out) < n; k, v = cur.Prev() {
				m := storedBolt(k, v)
				m.Body = slices.Clone(m.Body)
				out = append(out, m)
			}
		}
		return nil
	})
	slices.Reverse(out)
	return out, err
}

func (c *boltContext) Range(from, to int64) ([]Stored, error) {
	out := make([]Stored, 0, to-from)
	err := c.each(from, to, keep(&out))
	return out, err
}

func (c *boltContext) All(f func(Stored) error) error { return c.each(0, math.MaxInt64, f) }

func (c *boltContext) ByID(id uuid.UUID) (Stored, error) {
	var m Stored
	return m, c.db.View(func(tx *bolt.Tx) error {
		b := c.bucket(tx)
		at := b.Bucket(boltIDs).Get(id[:])
		if at == nil {
			return errors.New("not found")
		}
		m = storedBolt(at[:8], b.Bucket(boltBranch(string(at[8:]))).Get(at[:8]))
		m.Body = slices.Clone(m.Body)
		return nil
	})
}

func (c *boltContext) Fork(name string, at int64) error {
	return c.db.Update(func(tx *bolt.Tx) error { return addBoltBranch(c.bucket(tx), name, c.name, at) })
}

func (c *boltContext) Settle() error { return nil }
func (c *boltContext) Close() error  { return nil }
