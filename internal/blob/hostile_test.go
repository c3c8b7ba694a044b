package blob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/klauspost/compress/zstd"
)

// placeFile puts bytes where the blob of a name should be.
func placeFile(t testing.TB, sum Sum, content []byte) *Store {
	disk := crashfs.New()
	s := Open(disk)
	if err := errors.Join(s.makeFolders(sum), vfs.WriteNew(disk, Path(sum), content)); err != nil {
		t.Fatal(err)
	}
	return s
}

// allocated returns how much f allocates, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// decodeBound is what reading a small file may allocate: windows, and what the payload really holds.
const decodeBound = 40 << 20

// TestHostileFiles: a file claims much and holds little, or holds more than it claims.
func TestHostileFiles(t *testing.T) {
	sum := SumOf([]byte("x"))
	frame := func(b []byte, opts ...zstd.EOption) []byte {
		e, err := zstd.NewWriter(nil, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return e.EncodeAll(b, nil)
	}
	bomb := frame(make([]byte, 64<<20))
	raw := func(fhd byte, rest ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, 0xFD2FB528), append([]byte{fhd}, rest...)...)
	}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	for name, c := range map[string]struct {
		size   int64
		frames []byte
	}{
		"size beyond all":     {1<<63 - 1, frame([]byte("x"))},
		"more than it says":   {10, bomb},
		"more behind it":      {1, frame([]byte("xy"))},
		"a frame behind it":   {1, append(frame([]byte("x")), frame([]byte("y"))...)},
		"bomb":                {64 << 20, bomb},
		"window of terabytes": {1, raw(0, 0xff, 1, 0, 0)},
		"window of 16 MiB":    {1, raw(0, 14<<3, 9, 0, 0, 'x')}, // else in order,
		"content size":        {1, append(raw(0xe0, huge...), 9, 0, 0, 'y')},
		"skippable frame":     {1, []byte{0x51, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff}},
		"dictionary":          {1, raw(0x03, 0x38, 1, 2, 3, 4, 9, 0, 0, 'y')},
		"no frame":            {1, nil},
		"no frame, empty":     {0, nil},
		"garbage":             {1, noise(500)},
	} {
		s := placeFile(t, sum, append(header(c.size), c.frames...))
		limit := uint64(decodeBound)
		if name == "bomb" {
			limit += 3 * uint64(c.size) // it is real: what Get returns, grown by doubling
		}
		if n := allocated(func() {
			if _, err := s.Get(sum, math.MaxInt64); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
		}); n > limit {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
		if n := allocated(func() {
			r, size, err := s.Open(sum)
			if err != nil {
				return
			}
			got, err := io.Copy(io.Discard, r)
			if !errors.Is(err, ErrDamaged) || got > size {
				t.Errorf("%s: %d of %d bytes read, %v", name, got, size, err)
			}
			if _, again := r.Read(make([]byte, 1)); again != err {
				t.Errorf("%s: then %v", name, again)
			}
			_ = r.Close()
		}); n > decodeBound {
			t.Errorf("%s: %d bytes allocated in reading a stream", name, n)
		}
	}
	for _, h := range []func([]byte){
		func(b []byte) { b[0]++ }, func(b []byte) { b[4]++ }, func(b []byte) { b[15]++ }, func(b []byte) { b[23] = 0x80 },
	} {
		b := appendFrame(header(1), []byte("x"))
		h(b)
		s := placeFile(t, sum, b)
		if _, err := s.Stat(sum); !errors.Is(err, ErrDamaged) {
			t.Errorf("Stat of %x: %v", b[:headerSize], err)
		}
	}
}

// TestSeveralFrames: others may write a blob in more frames than we do.
// TestHeadOfAnotherSize: a blob whose head says another size than the reference is damaged, not too large.
func TestHeadOfAnotherSize(t *testing.T) {
	b := []byte("text")
	sum := SumOf(b)
	for _, size := range []int64{3, 5, math.MaxInt64} {
		s := placeFile(t, sum, appendFrame(header(size), b))
		_, err := Resolve([]byte(`{"$blob":"`+sum.String()+`","size":4}`), func(r Ref) ([]byte, error) { return s.Get(r.Sum, r.Size) })
		if !errors.Is(err, ErrDamaged) || errors.Is(err, vfs.ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestSeveralFrames(t *testing.T) {
	a, b := text(3000), noise(3000)
	whole := append(bytes.Clone(a), b...)
	file := appendFrame(appendFrame(header(6000), a), b)
	if got, err := placeFile(t, SumOf(whole), file).Get(SumOf(whole), 6000); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestEveryByteMatters: one changed byte of a file is noticed, or changes nothing that is read.
func TestEveryByteMatters(t *testing.T) {
	for _, b := range [][]byte{text(700), append([]byte("\xff\xd8\xff"), noise(200)...)} {
		sum := SumOf(b)
		whole := appendFrame(header(int64(len(b))), b)
		for i := range whole {
			file := bytes.Clone(whole)
			file[i] ^= 0x55
			got, err := placeFile(t, sum, file).Get(sum, 1<<20)
			if err == nil && !bytes.Equal(got, b) || err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, vfs.ErrTooLarge) {
				t.Errorf("byte %d: %d bytes, %v", i, len(got), err)
			}
			if got, err := placeFile(t, sum, whole[:i]).Get(sum, 1<<20); err == nil {
				t.Errorf("cut at %d: %d bytes", i, len(got))
			}
		}
	}
}

func TestReadAfterClose(t *testing.T) {
	b := text(3000)
	s := placeFile(t, SumOf(b), appendFrame(header(3000), b))
	r, _, err := s.Open(SumOf(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	if n, err := r.Read(make([]byte, 10)); n != 0 || err == nil || err == io.EOF {
		t.Error(n, err)
	}
}

// sparse is a long payload that costs nothing to make: mostly zeros, with numbers at every MiB.
type sparse struct{ at, size int64 }

func (s *sparse) Read(p []byte) (int, error) {
	if s.at == s.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), s.size-s.at)]
	clear(p)
	for i := (s.at + 1<<20 - 1) &^ (1<<20 - 1); i < s.at+int64(len(p)); i += 1 << 20 {
		p[i-s.at] = byte(i>>20) | 1
	}
	s.at += int64(len(p))
	return len(p), nil
}

// TestLongPayload: memory does not grow with the payload, however it is stored.
func TestLongPayload(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it writes 256 MiB")
	}
	const size = 256 << 20
	for name, head := range map[string][]byte{"compressed": {}, "noise first": noise(blockSize)} {
		s, _, _ := newStore(t)
		var sum Sum
		if n := allocated(func() {
			var err error
			var got int64
			sum, got, _, err = s.PutReader(io.MultiReader(bytes.NewReader(head), &sparse{size: size}))
			if err != nil || got != size+int64(len(head)) {
				t.Fatal(got, err)
			}
		}); n > 8<<20 {
			t.Errorf("%s: writing allocated %d bytes", name, n)
		}
		if n := allocated(func() {
			if err := s.Verify(sum); err != nil {
				t.Error(err)
			}
		}); n > 8<<20 {
			t.Errorf("%s: reading allocated %d bytes", name, n)
		}
		info, err := s.Stat(sum)
		t.Logf("%s: %d bytes in %d, %v", name, info.Size, info.Stored, err)
	}
}

func FuzzBlobFile(f *testing.F) {
	b := text(500)
	f.Add(appendFrame(header(500), b))
	f.Add(appendFrame(header(8), append([]byte("\xff\xd8\xff"), noise(5)...)))
	f.Add(header(0))
	f.Fuzz(func(t *testing.T, file []byte) {
		sum := SumOf(b)
		s := placeFile(t, sum, file)
		var got []byte
		var err error
		if n := allocated(func() { got, err = s.Get(sum, 1<<20) }); n > decodeBound {
			t.Errorf("%d bytes allocated for a file of %d", n, len(file))
		}
		if err == nil && SumOf(got) != sum {
			t.Errorf("%d wrong bytes", len(got))
		}
		if err == nil != (s.Verify(sum) == nil) && !errors.Is(err, vfs.ErrTooLarge) {
			t.Error("Verify and Get differ")
		}
	})
}

// TestHollowFile: frames that a reader passes over may claim gigabytes; where they were never written, they are not
// read.
func TestHollowFile(t *testing.T) {
	payload := []byte("payload")
	sum := SumOf(payload)
	fsys, err := vfs.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	s := Open(fsys)
	if _, _, err := s.Put(payload); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.OpenFile(Path(sum), os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const skipped = 1 << 30
	frames := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(header(int64(len(payload))), 0x184D2A51), skipped)
	_, err = f.WriteAt(frames, 0)
	if err == nil {
		_, err = f.WriteAt(appendFrame(nil, payload), int64(len(frames))+skipped)
	}
	if err != nil {
		t.Skipf("no files of this size here: %v", err)
	}
	if !vfs.HasHole(f, 0, skipped) {
		t.Skip("the file system does not tell of holes")
	}
	if b, err := s.Get(sum, 100); !errors.Is(err, ErrDamaged) {
		t.Errorf("%q, %v", b, err)
	}
}
