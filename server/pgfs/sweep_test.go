package pgfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/ctxdir/ctxdir/server/internal/s3test"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// aging is a bucket whose objects are new until they are made old.
type aging struct {
	bucket.Bucket
	all    atomic.Bool // are old
	hidden atomic.Bool // a list has nothing

	mu   sync.Mutex
	old  map[string]bool
	puts []string
}

func (a *aging) Put(ctx context.Context, name string, data []byte) error {
	a.mu.Lock()
	a.puts = append(a.puts, name)
	a.mu.Unlock()
	return a.Bucket.Put(ctx, name, data)
}

// grow makes objects old that were put until now.
func (a *aging) grow() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.old == nil {
		a.old = map[string]bool{}
	}
	for _, name := range a.puts {
		a.old[name] = true
	}
	a.puts = nil
}

func (a *aging) isOld(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all.Load() || a.old[name]
}

func (a *aging) List(ctx context.Context, folder string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		for x, err := range a.Bucket.List(ctx, folder) {
			if a.hidden.Load() {
				continue
			}
			x.Modified = time.Now()
			if a.isOld(x.Name) {
				x.Modified = time.Now().Add(-2 * inFlight)
			}
			if !yield(x, err) {
				return
			}
		}
	}
}

// TestSweep writes, replaces, removes and abandons content, in any order with sweeps and days that pass. A sweep removes what no
// row names, if it is old, and nothing else.
func TestSweep(t *testing.T) { eachStore(t, testSweep) }

func testSweep(t *testing.T, in bucket.Bucket) {
	pool, keys := database(t), NewKeys(master(t))
	rapid.Check(t, func(rt *rapid.T) {
		b := &aging{Bucket: in}
		d := newDiskOf(t, pool, keys).attach(b)
		f := d.open()
		defer func() { check(t, f.Close()) }()
		model := map[string][]byte{}
		name := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name") }
		look := func() {
			for name, want := range model {
				if got, err := get(f, name); err != nil || !bytes.Equal(got, want) || len(d.damages) > 0 {
					rt.Fatalf("%s: %d bytes instead of %d, %v, %v", name, len(got), len(want), err, d.damages)
				}
			}
		}
		sweep := func() Swept {
			s, err := Sweep(t.Context(), pool, d.objects, 0)
			check(t, err)
			return s
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(*rapid.T) {
				name, size := name(), rapid.SampledFrom([]int{100, 40_000, 300_000}).Draw(rt, "size")
				model[name] = dense(rapid.Byte().Draw(rt, "seed"), size)
				put(t, f, name, model[name])
			},
			"remove": func(*rapid.T) {
				name := name()
				if model[name] == nil {
					rt.Skip("there is no such file")
				}
				check(t, f.Remove(name))
				delete(model, name)
			},
			"abandon": func(*rapid.T) { check(t, d.objects.Put(t.Context(), uuid.New(), []byte("abandoned"))) },
			"days":    func(*rapid.T) { b.grow() },
			"sweep":   func(*rapid.T) { sweep() },
			"reopen": func(*rapid.T) {
				check(t, f.Close())
				f = d.open()
				look()
			},
		})
		b.grow()
		sweep()
		check(t, f.Close())
		f = d.open()
		look()
		left := d.objectNames(b)
		for _, x := range d.named() {
			if left[x] == "" {
				rt.Errorf("%s is gone", x)
			}
			delete(left, x)
		}
		for x := range left {
			if b.isOld(left[x]) && !d.isNamed(x) {
				rt.Errorf("%s is left", x)
			}
		}
	})
}

// isNamed reports whether a row of any user names an object.
func (d *disk) isNamed(x uuid.UUID) (is bool) {
	d.t.Helper()
	check(d.t, d.pool.QueryRow(context.Background(), "SELECT EXISTS (SELECT FROM extents WHERE object = $1)", x).Scan(&is))
	return is
}

// TestSweepBesideWriters sweeps all the time while users write and replace files. Objects get old as soon as their write has
// ended.
func TestSweepBesideWriters(t *testing.T) { eachStore(t, testSweepBesideWriters) }

func testSweepBesideWriters(t *testing.T, in bucket.Bucket) {
	pool, keys := database(t), NewKeys(master(t))
	const writers, rounds = 4, 25
	var users sync.WaitGroup
	var buckets [writers]*aging
	for i := range writers {
		buckets[i] = &aging{Bucket: in}
		d := newDiskOf(t, pool, keys).attach(buckets[i])
		users.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			model := map[string][]byte{}
			f := d.open()
			for n := range rounds {
				name := fmt.Sprint(random.IntN(3))
				model[name] = dense(byte(n), 40_000+random.IntN(300_000))
				put(t, f, name, model[name])
				buckets[i].grow()
				if n%8 == 7 {
					check(t, f.Close())
					f = d.open()
				}
				for name, want := range model {
					if got, err := get(f, name); err != nil || !bytes.Equal(got, want) || len(d.damages) > 0 {
						t.Errorf("%s: %d bytes instead of %d, %v, %v", name, len(got), len(want), err, d.damages)
						return
					}
				}
			}
			check(t, f.Close())
		})
	}
	ended := make(chan struct{})
	go func() { users.Wait(); close(ended) }()
	sweeper := newDiskOf(t, pool, keys).attach(every{in, buckets[:]})
	removed := 0
	for last := false; !last; {
		select {
		case <-ended:
			last = true
		default:
		}
		s, err := Sweep(t.Context(), pool, sweeper.objects, 0)
		check(t, err)
		removed += s.Removed
	}
	t.Logf("%d objects were removed beside writers", removed)
	if removed < writers*rounds/2 {
		t.Errorf("only %d objects were removed", removed)
	}
}

// every is a bucket in which an object is old if it is in one of others.
type every struct {
	bucket.Bucket
	of []*aging
}

func (e every) List(ctx context.Context, folder string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		for x, err := range e.Bucket.List(ctx, folder) {
			x.Modified = time.Now()
			if slices.ContainsFunc(e.of, func(a *aging) bool { return a.isOld(x.Name) }) {
				x.Modified = time.Now().Add(-2 * inFlight)
			}
			if !yield(x, err) {
				return
			}
		}
	}
}

// TestGrace: an object outlives its row by the grace, so that a database that is set back finds it.
func TestGrace(t *testing.T) {
	b := &aging{Bucket: inFolder(t)}
	d := newDisk(t).attach(b)
	f := d.open()
	text := dense(1, 100_000)
	put(t, f, "file", text)
	b.all.Store(true)
	const week = 7 * 24 * time.Hour
	sweep := func(want Swept) {
		t.Helper()
		s, err := Sweep(t.Context(), d.pool, d.objects, week)
		check(t, err)
		if s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	sweep(Swept{Objects: 1})
	d.exec("INSERT INTO orphans SELECT $1, object, now() - interval '8 days' FROM extents WHERE object IS NOT NULL", uuid.Nil)
	b.hidden.Store(true)
	sweep(Swept{}) // the note is wrong, and the list lacks the object
	b.hidden.Store(false)
	d.exec("CREATE TABLE backup AS SELECT * FROM extents")
	d.exec("CREATE TABLE names AS SELECT * FROM entries")
	d.exec("CREATE TABLE times AS SELECT * FROM nodes")
	check(t, f.Remove("file"))
	check(t, f.Close())
	sweep(Swept{Objects: 1, Orphans: 1})
	d.exec("UPDATE orphans SET since = since - interval '6 days 23 hours'")
	sweep(Swept{Objects: 1, Orphans: 1})

	for _, table := range [][2]string{{"extents", "backup"}, {"entries", "names"}, {"nodes", "times"}} {
		d.exec("DELETE FROM " + table[0])
		d.exec("INSERT INTO " + table[0] + " SELECT * FROM " + table[1])
	}
	sweep(Swept{Objects: 1})
	f = d.open()
	if got, err := get(f, "file"); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the database was set back: %v", err)
	}
	check(t, f.Remove("file"))
	check(t, f.Close())
	sweep(Swept{Objects: 1, Orphans: 1}) // the week begins anew
	d.exec("UPDATE orphans SET since = since - interval '6 days'")
	sweep(Swept{Objects: 1, Orphans: 1})
	d.exec("UPDATE orphans SET since = since - interval '1 day'")
	sweep(Swept{Objects: 1, Orphans: 1, Removed: 1})
	sweep(Swept{})
	if n := d.exec("DELETE FROM orphans"); n != 0 {
		t.Errorf("%d notes are left", n)
	}
}

// TestClaimSweep: one of many processes sweeps, once a day.
func TestClaimSweep(t *testing.T) {
	d := newDisk(t).attach(inFolder(t))
	claims := func() (n int) {
		for range 5 {
			is, err := ClaimSweep(t.Context(), d.pool)
			check(t, err)
			if is {
				n++
			}
		}
		return n
	}
	if n := claims(); n != 0 {
		t.Errorf("%d on the first day", n)
	}
	d.exec("UPDATE buckets SET swept = swept - interval '1 day'")
	if n := claims(); n != 1 {
		t.Errorf("%d on the second day", n)
	}
}

// TestAttach: a database finds its own bucket, and takes no other one for it.
func TestAttach(t *testing.T) {
	store := s3test.Start(t)
	b := store.Open(t)
	d := newDisk(t).attach(nil)
	if d.objects != nil {
		t.Error("there are objects without a bucket")
	}
	d.attach(b).attach(nil).attach(b) // no row names an object
	f := d.open()
	put(t, f, "file", dense(1, 100_000))
	check(t, f.Close())

	if _, err := Attach(t.Context(), d.pool, nil); !errors.Is(err, ErrNoBucket) {
		t.Errorf("without a bucket: %v", err)
	}
	if _, err := Attach(t.Context(), d.pool, inFolder(t)); !errors.Is(err, ErrBucket) {
		t.Errorf("with another bucket: %v", err)
	}
	store.Away.Store(true)
	if _, err := Attach(t.Context(), d.pool, b); !bucket.IsUnreachable(err) || errors.Is(err, ErrBucket) {
		t.Errorf("with one that does not answer: %v", err)
	}
	store.Away.Store(false)
	d.attach(b)

	d.objects = nil // another server was started before there were objects
	f = d.open()
	defer f.Close()
	if _, err := get(f, "file"); !errors.Is(err, errNoObjects) || len(d.damages) > 0 {
		t.Errorf("reading without a bucket: %v, %v", err, d.damages)
	}
}
