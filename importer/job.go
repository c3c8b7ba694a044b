package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"
)

const (
	zstdMagic   = "\x28\xb5\x2f\xfd"
	sqliteMagic = "SQLite format 3\x00"

	// maxWindow limits the memory for decompression: a larger window is not a file of a tool.
	maxWindow = 128 << 20
)

const (
	byLine   layout = iota // one object per line
	asArray                // one JSON array
	asObject               // one JSON object, over several lines
)

func newValues(j *job, report func(int64, string), progress func(read, size int64)) *values {
	v := &values{file: j.file, report: report, line: 1, start: j.skip}
	r := j.reader(progress)
	var head [len(bom)]byte
	if n, _ := j.file.ReadAt(head[:], j.skip); string(head[:n]) == bom {
		v.start += int64(n)
		_, _ = io.ReadFull(r, head[:])
	}
	v.src = &limitReader{r: r, limit: j.o.MaxRecord}
	v.d = jsontext.NewDecoder(v.src, lenient...)
	return v
}

// job is the import of one file.
type job struct {
	ctx    context.Context
	store  Store
	path   string
	file   *os.File
	size   int64 // when opened: an active session's file keeps growing
	packed bool  // compressed with zstd
	skip   int64 // bytes before the content
	format Format
	layout layout

	storage  bool // a session of a storage folder of opencode
	database bool
	folder   *folderEvents
	o        Options
	yield    func(Result, error) bool

	problems int64 // since the last result
	results  int
	stopped  bool // the caller stopped the iteration
}

func (j *job) close() {
	if j.folder != nil {
		j.folder.root.Close()
		return
	}
	j.file.Close()
}

// result is a result without a conversation.
func (j *job) result() Result {
	return Result{Path: j.path, Format: j.format, Problems: j.problems}
}

// emit yields a result and reports whether to continue.
func (j *job) emit(r Result, err error) bool {
	r.Problems, j.problems = j.problems, 0
	j.results++
	if !j.yield(r, err) {
		j.stopped = true
	}
	return !j.stopped
}

// errUnfinished means that a growing file is not a history yet.
var errUnfinished = errors.New("the file has no complete record yet")

func (j *job) report(line int64, reason string) { j.problem(Problem{j.path, line, reason}) }

func (j *job) problem(p Problem) {
	j.problems++
	if j.o.Problem != nil {
		j.o.Problem(p)
	}
}

// reader reads the file from the beginning up to its size when opened. It decompresses a file packed with zstd.
func (j *job) reader(progress func(read, size int64)) io.Reader {
	r := &progressReader{vfs.FileOf(j.file), j.skip, j.size, progress}
	if !j.packed {
		return r
	}
	return &unpackReader{packed: r}
}

// unpackReader decompresses zstd. Without concurrency the decoder holds no goroutine, so nothing has to close it.
type unpackReader struct {
	packed io.Reader
	d      *zstd.Decoder
}

func (u *unpackReader) Read(p []byte) (n int, err error) {
	if u.d == nil {
		u.d, err = zstd.NewReader(u.packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}
	if err == nil {
		n, err = u.d.Read(p)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("cannot decompress the file: %w", err)
	}
	return n, err
}

// records returns the records of the file. report and progress may be nil.
func (j *job) records(report func(line int64, reason string), progress func(read, size int64)) records {
	if j.folder != nil {
		if report == nil {
			return j.folder.records(&j.o, nil)
		}
		return j.folder.records(&j.o, j.problem)
	}
	if j.layout == byLine {
		l := newLines(j.reader(progress), j.o.MaxRecord, report)
		l.growing = j.o.Growing
		return l
	}
	return newValues(j, report, progress)
}

// progressReader reads a file and reports its progress. Of an unwritten part, which reads as zeros, it returns only the
// first ones.
type progressReader struct {
	file       vfs.File
	read, size int64
	progress   func(read, size int64)
}

func (m *progressReader) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), m.size-m.read)]
	if len(p) == 0 {
		return 0, io.EOF
	}
	n, err := m.file.ReadAt(p, m.read)
	m.read += int64(n)
	if n > 0 && p[n-1] == 0 {
		m.read = vfs.NextData(m.file, m.read, m.size)
	}
	if n > 0 && m.progress != nil {
		m.progress(m.read, m.size)
	}
	return n, err
}

// layout is the arrangement of records in a file.
type layout int
