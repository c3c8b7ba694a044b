package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// newStore returns a store in a folder of the real file system.
func newStore(t testing.TB) (*Store, vfs.FS, string) {
	dir := t.TempDir()
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	return Open(fsys), fsys, dir
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

func text(n int) []byte {
	return bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog.\n"), n/45+1)[:n]
}

// payloads are of every way to be stored.
var payloads = map[string][]byte{
	"empty":              {},
	"one byte":           {7},
	"text":               text(5_000),
	"noise":              noise(5_000),
	"a block":            text(blockSize),
	"a block of noise":   noise(blockSize),
	"more than a block":  append(text(blockSize), 'x'),
	"three blocks":       append(noise(200_000), text(150_000)...),
	"png":                append([]byte("\x89PNG\r\n\x1a\n"), noise(3_000)...),
	"large png":          append([]byte("\x89PNG\r\n\x1a\n"), noise(700_000)...),
	"png of blocks":      append([]byte("\x89PNG\r\n\x1a\n"), noise(3*blockSize-8)...),
	"png that shrinks":   append([]byte("\x89PNG\r\n\x1a\n"), text(3_000)...),
	"large that shrinks": append([]byte("%PDF-1.7\n"), text(700_000)...),
	"mp4":                append([]byte("\x00\x00\x00\x20ftypisom"), noise(3_000)...),
}

func TestRoundTrip(t *testing.T) {
	puts := map[string]func(*Store, []byte) (Sum, bool, error){
		"Put":         (*Store).Put,
		"PutUnsynced": (*Store).PutUnsynced,
		"PutReader": func(s *Store, b []byte) (Sum, bool, error) {
			// One byte at a time at first: a reader owes nobody full buffers.
			sum, size, created, err := s.PutReader(io.MultiReader(&oneByte{b[:min(len(b), 100)]}, bytes.NewReader(b[min(len(b), 100):])))
			if err == nil && size != int64(len(b)) {
				err = errors.New("wrong size")
			}
			return sum, created, err
		},
		"Rewrite": func(s *Store, b []byte) (Sum, bool, error) {
			_, err := s.fs.Lstat(Path(SumOf(b)))
			sum, werr := s.Rewrite(b)
			return sum, err != nil, werr
		},
	}
	for how, put := range puts {
		s, _, _ := newStore(t)
		for name, b := range payloads {
			t.Run(how+" "+name, func(t *testing.T) {
				for i := range 2 {
					sum, created, err := put(s, b)
					if err != nil || sum != sha256.Sum256(b) || created != (i == 0) {
						t.Fatalf("put %d: %v, %v, %v", i, sum, created, err)
					}
				}
				sum := SumOf(b)
				got, err := s.Get(sum, int64(len(b)))
				if err != nil || !bytes.Equal(got, b) {
					t.Fatalf("Get: %d bytes, %v; wanted %d", len(got), err, len(b))
				}
				info, err := s.Stat(sum)
				if err != nil || info.Size != int64(len(b)) || info.Sum != sum || info.Stored < int64(headerSize) {
					t.Errorf("Stat: %+v, %v", info, err)
				}
				if most := int64(len(b) + len(b)/100 + 64); info.Stored > most {
					t.Errorf("%d bytes stored for %d", info.Stored, len(b))
				}
				if len(b) > 0 {
					if _, err := s.Get(sum, int64(len(b))-1); !errors.Is(err, vfs.ErrTooLarge) {
						t.Errorf("Get over its limit: %v", err)
					}
				}
			})
		}
		for sum, err := range s.Walk(func(p string) { t.Errorf("%s left %s", how, p) }) {
			if err != nil || s.Verify(sum) != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
	}
}

type oneByte struct{ b []byte }

func (o *oneByte) Read(p []byte) (int, error) {
	if len(o.b) == 0 {
		return 0, io.EOF
	}
	p[0] = o.b[0]
	o.b = o.b[1:]
	return 1, nil
}

// TestKnownBytes holds the format still.
func TestKnownBytes(t *testing.T) {
	s, fsys, _ := newStore(t)
	sum, _, err := s.Put(append([]byte("\xff\xd8\xff"), noise(5)...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := vfs.ReadFile(fsys, Path(sum), 1<<20)
	want := "502a4d18" + "10000000" + hex.EncodeToString([]byte("ctxblob1")) + "0800000000000000" + // header
		"28b52ffd" + "04" + "00" + "410000" + "ffd8ff" + hex.EncodeToString(noise(5)) + "1e13e223" // a frame of one raw block
	if hex.EncodeToString(got) != want || err != nil {
		t.Errorf("%x, %v\nwanted %s", got, err, want)
	}
	if p := Path(sum); p != "blobs/"+sum.String()[:2]+"/"+sum.String()[2:4]+"/"+sum.String()+".zst" {
		t.Error(p)
	}
}

// TestZstdcat: what we write is what the standard tool reads.
func TestZstdcat(t *testing.T) {
	tool, err := exec.LookPath("zstdcat")
	if err != nil {
		t.Skip("no zstdcat here")
	}
	s, _, dir := newStore(t)
	for name, b := range payloads {
		sum, _, _, err := s.PutReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		got, err := exec.Command(tool, filepath.Join(dir, filepath.FromSlash(Path(sum)))).Output()
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: %d bytes, %v; wanted %d", name, len(got), err, len(b))
		}
	}
}

// TestWhatDoesNotShrink: such a payload takes little more than itself, and the rest shrinks.
func TestWhatDoesNotShrink(t *testing.T) {
	s, fsys, _ := newStore(t)
	for name, b := range payloads {
		sum, _, err := s.Put(b)
		if err != nil {
			t.Fatal(err)
		}
		file, err := vfs.ReadFile(fsys, Path(sum), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		const around = headerSize + 4 + 14 + 4 // magic number, frame header, checksum
		if most := around + len(b) + 3*(len(b)/blockSize+2); len(file) > most {
			t.Errorf("%s: %d bytes stored for %d", name, len(file), len(b))
		}
		if strings.Contains(name, "shrinks") && len(file) > len(b)/10 {
			t.Errorf("%s: %d bytes stored for %d", name, len(file), len(b))
		}
	}
}

func TestMissing(t *testing.T) {
	s, _, _ := newStore(t)
	sum := SumOf([]byte("no such"))
	_, gerr := s.Get(sum, 1<<20)
	_, serr := s.Stat(sum)
	_, _, oerr := s.Open(sum)
	for _, err := range []error{gerr, serr, oerr, s.Touch(sum), s.Verify(sum)} {
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	}
	for range s.Walk(nil) {
		t.Error("a blob in a store that has none")
	}
}

func TestParseSum(t *testing.T) {
	sum := SumOf([]byte("x"))
	if got, err := ParseSum(sum.String()); got != sum || err != nil {
		t.Error(got, err)
	}
	h := sum.String()
	for _, bad := range []string{"", h[1:], h + "0", strings.ToUpper(h), "g" + h[1:], "/" + h[1:], h[:63] + "`", h[:63] + ":"} {
		if _, err := ParseSum(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestTouch: putting a blob again tells the sweep that it is wanted.
func TestTouch(t *testing.T) {
	b := text(2000)
	for name, again := range map[string]func(*Store) error{
		"Touch":       func(s *Store) error { return s.Touch(SumOf(b)) },
		"Put":         func(s *Store) error { _, _, err := s.Put(b); return err },
		"PutUnsynced": func(s *Store) error { _, _, err := s.PutUnsynced(b); return err },
		"PutReader":   func(s *Store) error { _, _, _, err := s.PutReader(bytes.NewReader(b)); return err },
	} {
		s, fsys, _ := newStore(t)
		sum, _, err := s.Put(b)
		if err != nil {
			t.Fatal(err)
		}
		f, err := fsys.OpenFile(Path(sum), os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-48 * time.Hour)
		if err := errors.Join(f.SetModTime(old), f.Close()); err != nil {
			t.Fatal(err)
		}
		before, _ := fsys.Lstat(Path(sum))
		if err := again(s); err != nil {
			t.Fatal(name, err)
		}
		after, _ := fsys.Lstat(Path(sum))
		if time.Since(after.ModTime()) > time.Hour {
			t.Errorf("%s left the time at %v", name, after.ModTime())
		}
		if !vfs.SameFile(before, after) {
			t.Errorf("%s wrote the blob again", name)
		}
	}
}

func TestManyWritersOfOnePayload(t *testing.T) {
	s, _, _ := newStore(t)
	b := text(300_000)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			var err error
			switch i % 3 {
			case 0:
				_, _, err = s.Put(b)
			case 1:
				_, _, err = s.PutUnsynced(b)
			default:
				_, _, _, err = s.PutReader(bytes.NewReader(b))
			}
			if err == nil {
				err = s.Verify(SumOf(b))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for sum, err := range s.Walk(func(p string) { t.Error("left over:", p) }) {
		if n++; err != nil || sum != SumOf(b) {
			t.Error(sum, err)
		}
	}
	if n != 1 {
		t.Errorf("%d blobs of one payload", n)
	}
}

func TestReaderFails(t *testing.T) {
	s := Open(crashfs.New())
	for _, broken := range []error{errors.New("broken pipe"), io.ErrUnexpectedEOF, fmt.Errorf("connection: %w", io.EOF)} {
		for _, n := range []int{0, 10, blockSize, 5*blockSize + 10} {
			for _, magic := range []string{"", "OggS"} {
				_, _, _, err := s.PutReader(io.MultiReader(strings.NewReader(magic), bytes.NewReader(noise(n)), &failing{broken}))
				if !errors.Is(err, broken) {
					t.Errorf("after %d bytes: %v", n, err)
				}
			}
		}
	}
	for sum := range s.Walk(func(p string) { t.Error("left over:", p) }) {
		t.Error("stored", sum)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// TestReadErrorIsNotDamage: a disk that fails to read says nothing about the blob.
func TestReadErrorIsNotDamage(t *testing.T) {
	disk := crashfs.New()
	s := Open(disk)
	sum, _, err := s.Put(noise(300_000))
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("input/output error")
	for good := range 3 {
		reads := 0
		disk.Fail(func(o crashfs.Op) error {
			if o.Kind != crashfs.KindRead {
				return nil
			}
			if reads++; reads > good {
				return broken
			}
			return nil
		})
		if err := s.Verify(sum); !errors.Is(err, broken) || errors.Is(err, ErrDamaged) {
			t.Errorf("after %d reads: %v", good, err)
		}
	}
}
