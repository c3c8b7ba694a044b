package pgfs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/ctxdir/ctxdir/server/internal/s3test"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// dense returns bytes that do not get smaller, without 0xff.
func dense(seed byte, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	for i := range b {
		b[i] &= 0x7f
	}
	return b
}

// put writes a file, and makes it durable.
func put(t testing.TB, f *FS, name string, b []byte) {
	t.Helper()
	check(t, f.Replace(name, b))
	check(t, f.SyncDir("."))
}

func get(f *FS, name string) ([]byte, error) {
	h, err := f.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	_, err = h.ReadAt(b, 0)
	return b, errors.Join(err, h.Close())
}

// named returns the objects that rows of a user name, in the order of the file.
func (d *disk) named() []uuid.UUID {
	d.t.Helper()
	rows, err := d.pool.Query(context.Background(),
		"SELECT object FROM extents WHERE user_id = $1 AND object IS NOT NULL ORDER BY node, off", d.user)
	check(d.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	check(d.t, err)
	return all
}

// objectNames returns the names that objects have in a bucket.
func (d *disk) objectNames(b bucket.Bucket) map[uuid.UUID]string {
	d.t.Helper()
	names := map[uuid.UUID]string{}
	id, err := bucketOf(context.Background(), d.pool)
	check(d.t, err)
	for x, err := range b.List(context.Background(), id.String()) {
		check(d.t, err)
		if id, err := uuid.Parse(path.Base(x.Name)); err == nil {
			names[id] = x.Name
		}
	}
	return names
}

// TestObjects: large content goes into the bucket, sealed, and small content does not.
func TestObjects(t *testing.T) { eachStore(t, testObjects) }

func testObjects(t *testing.T, b bucket.Bucket) {
	d := newDisk(t).attach(b)
	f := d.open()
	large, small := dense(1, 700_000), dense(2, 10_000)
	put(t, f, "large", large)
	put(t, f, "small", small)
	check(t, f.Close())
	names := d.objectNames(b)
	if n := len(d.named()); n != 3 || len(names) != n {
		t.Errorf("%d rows name objects, and the bucket has %d", n, len(names))
	}
	var inDatabase int
	check(t, d.pool.QueryRow(t.Context(), "SELECT sum(octet_length(data)) FROM extents").Scan(&inDatabase))
	if inDatabase > 2*len(small) {
		t.Errorf("the database has %d bytes", inDatabase)
	}
	for _, name := range names {
		sealed, err := b.Get(t.Context(), name, 1<<20)
		check(t, err)
		if bytes.Contains(large, sealed[100:120]) {
			t.Errorf("%s is not encrypted", name)
		}
	}
	f = d.open()
	defer f.Close()
	for name, want := range map[string][]byte{"large": large, "small": small} {
		if got, err := get(f, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if len(d.damages) > 0 {
		t.Error(d.damages)
	}
}

// TestDamagedObject: what is not what was put reads as damage, never as something else. The rest of the file can be read.
func TestDamagedObject(t *testing.T) {
	for what, harm := range map[string]func(b bucket.Bucket, own, other string, sealed, theirs []byte) error{
		"missing": func(b bucket.Bucket, own, _ string, _, _ []byte) error { return b.Remove(context.Background(), own) },
		"flipped": func(b bucket.Bucket, own, _ string, s, _ []byte) error {
			s[999] ^= 4
			return b.Put(context.Background(), own, s)
		},
		"truncated": func(b bucket.Bucket, own, _ string, s, _ []byte) error {
			return b.Put(context.Background(), own, s[:999])
		},
		"empty": func(b bucket.Bucket, own, _ string, _, _ []byte) error {
			return b.Put(context.Background(), own, []byte("x"))
		},
		"longer": func(b bucket.Bucket, own, _ string, s, _ []byte) error {
			return b.Put(context.Background(), own, append(s, make([]byte, 1<<20)...))
		},
		"exchanged": func(b bucket.Bucket, own, other string, s, theirs []byte) error {
			return errors.Join(b.Put(context.Background(), own, theirs), b.Put(context.Background(), other, s))
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := inFolder(t)
			ada := newDisk(t).attach(b)
			bob := newDiskOf(t, ada.pool, ada.keys).attach(b)
			own, other := dense(1, 700_000), dense(2, 700_000)
			for d, text := range map[*disk][]byte{ada: own, bob: other} {
				f := d.open()
				put(t, f, "file", text)
				check(t, f.Close())
			}
			names := ada.objectNames(b)
			first, second := names[ada.named()[1]], names[bob.named()[1]]
			sealed, err := b.Get(t.Context(), first, 1<<20)
			check(t, err)
			theirs, err := b.Get(t.Context(), second, 1<<20)
			check(t, err)
			check(t, harm(b, first, second, sealed, theirs))
			f := ada.open()
			defer f.Close()
			got, err := get(f, "file")
			check(t, err)
			want := slices.Clone(own)
			copy(want[maxObject:], broken(maxObject))
			if !bytes.Equal(got, want) {
				t.Error("it reads as something else")
			}
			if len(ada.damages) == 0 || !errors.Is(ada.damages[0], ErrDamaged) {
				t.Errorf("the damage is %v", ada.damages)
			}
		})
	}
}

func denseText(n int) string { return base64.RawURLEncoding.EncodeToString(dense(byte(n), 200_000)) }

// fillDense makes a store with a context of messages that the bucket has.
func fillDense(t *testing.T, f *FS, id uuid.UUID, messages int) {
	t.Helper()
	s, err := ctxdir.Init("database", knobs.Options(engine.WithFS(f)))
	check(t, err)
	c, err := s.Create(t.Context(), ctxdir.Metadata{ID: id})
	check(t, err)
	for n := range messages {
		body := fmt.Sprintf(`{"role":"user","content":%q}`, denseText(n))
		_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: json.RawMessage(body)})
		check(t, err)
	}
	check(t, errors.Join(c.Close(), s.Close(), f.Close()))
}

// intactDense counts the messages that are as they were written.
func intactDense(t *testing.T, s *ctxdir.Store, id uuid.UUID) (n int) {
	t.Helper()
	check(t, s.Use(t.Context(), id, func(c *ctxdir.Context) error {
		for m, err := range c.Active().Messages(t.Context(), 0, 100) {
			check(t, err)
			body, err := m.Body(t.Context())
			if m.Unavailable == nil && err == nil && strings.Contains(string(body), denseText(int(m.Position))) {
				n++
			}
		}
		return nil
	}))
	return n
}

// TestRepairWithoutObject: a check finds that objects are missing, and a repair mends what can be.
func TestRepairWithoutObject(t *testing.T) {
	b := inFolder(t)
	d, id := newDisk(t).attach(b), uuid.New()
	const messages = 5
	fillDense(t, d.open(), id, messages)
	all := d.named()
	if len(all) < messages {
		t.Fatalf("there are %d objects", len(all))
	}
	check(t, d.objects.Remove(t.Context(), all[0]))

	f := d.open()
	s, err := ctxdir.Open("database", knobs.Options(engine.WithFS(f)))
	check(t, err)
	found := 0
	for x, err := range s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		check(t, err)
		if x.Severity == ctxdir.SeverityError {
			found++
		}
	}
	if found == 0 || len(d.damages) == 0 {
		t.Errorf("a check finds %d, with %v", found, d.damages)
	}
	_, err = s.Repair(t.Context(), ctxdir.RepairOptions{All: true})
	check(t, err)
	if n := intactDense(t, s, id); n != messages-1 {
		t.Errorf("%d of %d messages are intact", n, messages)
	}
	check(t, errors.Join(s.Close(), f.Close()))
}

// TestStoreAway: a store that does not answer is a fault of the disk, not damage. Once it is back, everything works again.
func TestStoreAway(t *testing.T) {
	store := s3test.Start(t)
	d := newDisk(t).attach(store.Open(t))
	f := d.open()
	text := dense(1, 100_000)
	put(t, f, "file", text)
	check(t, f.Close())
	f = d.open()
	defer func() { check(t, f.Close()) }()

	store.Away.Store(true)
	if got, err := get(f, "file"); !errors.Is(err, syscall.EIO) || bytes.Contains(got, []byte{0xff}) {
		t.Errorf("reading: %v", err)
	}
	if err := f.Replace("file", dense(2, 100_000)); !errors.Is(err, syscall.EIO) {
		t.Errorf("writing: %v", err)
	}
	small := dense(3, 100)
	put(t, f, "small", small)
	if len(d.damages) > 0 || f.Alive() != nil {
		t.Errorf("it takes it for damage: %v, %v", d.damages, f.Alive())
	}
	store.Away.Store(false)
	if got, err := get(f, "file"); err != nil || !bytes.Equal(got, text) {
		t.Errorf("it is back: %v", err)
	}
	text = dense(4, 100_000)
	put(t, f, "file", text)
	if got, err := get(f, "file"); err != nil || !bytes.Equal(got, text) {
		t.Errorf("after another write: %v", err)
	}
}

// TestCheckAway: a check and a repair while the store is away change nothing, and afterwards nothing is damaged.
func TestCheckAway(t *testing.T) {
	store := s3test.Start(t)
	d, id := newDisk(t).attach(store.Open(t)), uuid.New()
	const messages = 1
	fillDense(t, d.open(), id, messages)
	f := d.open()
	s, err := ctxdir.Open("database", knobs.Options(engine.WithFS(f)))
	check(t, err)
	store.Away.Store(true)
	for x, err := range s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		t.Logf("check: %+v, %v", x, err)
	}
	r, err := s.Repair(t.Context(), ctxdir.RepairOptions{All: true})
	t.Logf("repair: %+v, %v", r, err)
	_, err = s.Collect(t.Context(), ctxdir.CollectOptions{All: true})
	t.Logf("collect: %v", err)
	if len(d.damages) > 0 {
		t.Error(d.damages)
	}
	store.Away.Store(false)
	check(t, errors.Join(s.Close(), f.Close()))
	f = d.open()
	s, err = ctxdir.Open("database", knobs.Options(engine.WithFS(f)))
	check(t, err)
	for x, err := range s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		check(t, err)
		if x.Severity != ctxdir.SeverityInfo {
			t.Errorf("%+v", x)
		}
	}
	if n := intactDense(t, s, id); n != messages {
		t.Errorf("%d of %d messages are intact", n, messages)
	}
	check(t, errors.Join(s.Close(), f.Close()))
}

// hooked calls a function after each Put.
type hooked struct {
	bucket.Bucket
	after func(name string)
}

func (h hooked) Put(ctx context.Context, name string, data []byte) error {
	err := h.Bucket.Put(ctx, name, data)
	h.after(name)
	return err
}

// TestObjectBeforeRow: a row never names an object that the store has not confirmed. A writer that ends between leaves an
// object, which a sweep removes.
func TestObjectBeforeRow(t *testing.T) {
	b := inFolder(t)
	d := newDisk(t).attach(b)
	f := d.open()
	put(t, f, "file", dense(1, 100_000))
	before := d.named()
	puts := 0
	dying := hooked{b, func(string) {
		if now := d.named(); !slices.Equal(now, before) {
			t.Errorf("a row names an object amid its upload: %s", now)
		}
		if puts++; puts == 1 {
			other := *d
			check(t, other.open().Close()) // another process takes over
		}
	}}
	d.attach(dying)
	g := d.open()
	if err := g.Replace("file", dense(2, 100_000)); !errors.Is(err, ErrTaken) || puts != 1 {
		t.Errorf("after %d objects: %v", puts, err)
	}
	_ = g.Close()
	if n := len(d.objectNames(b)); n != 2 {
		t.Errorf("the bucket has %d objects", n)
	}
	aged := &aging{Bucket: b}
	aged.all.Store(true)
	s, err := Sweep(t.Context(), d.pool, d.attach(aged).objects, 0)
	check(t, err)
	if s != (Swept{Objects: 2, Orphans: 1, Removed: 1}) {
		t.Errorf("%+v", s)
	}
	f = d.open()
	defer f.Close()
	if got, err := get(f, "file"); err != nil || !bytes.Equal(got, dense(1, 100_000)) || len(d.damages) > 0 {
		t.Errorf("%d bytes, %v, %v", len(got), err, d.damages)
	}
}
