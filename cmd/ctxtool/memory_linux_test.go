package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// bomb is a store of some KB whose one context has messages of hundreds of MiB.
type bomb struct {
	t     *testing.T
	store string
	s     *ctxdir.Store
	c     *ctxdir.Context
}

func newBomb(t *testing.T) *bomb {
	b := &bomb{t: t, store: filepath.Join(t.TempDir(), "store")}
	var err error
	b.s, err = ctxdir.Init(b.store, ctxdir.Options{TextThreshold: -1})
	if err == nil {
		b.c, err = b.s.Create(t.Context(), ctxdir.Metadata{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// append appends a message with an attachment of so many zeros, unless none.
func (b *bomb) append(body string, size int64) uuid.UUID {
	b.t.Helper()
	d := ctxdir.Draft{Body: json.RawMessage(body)}
	if size > 0 {
		d.Attachments = []ctxdir.Attachment{{At: "/content/0/source/data", MediaType: "image/png", Open: func() (io.ReadCloser, error) {
			return io.NopCloser(io.LimitReader(zeros{}, size)), nil
		}}}
	}
	at, err := b.c.Active().Append(b.t.Context(), d)
	if err != nil {
		b.t.Fatal(err)
	}
	return at.ID
}

// multiply puts n copies of the reference in a message in its place, as elements of one array; change changes each.
func (b *bomb) multiply(id uuid.UUID, n int, change func(ref string) string) {
	b.t.Helper()
	b.edit(id, blobRef, func(ref string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(change(ref)+",", n), ",") + "]"
	})
}

// multiplyBlock puts n copies of the block with the reference in its place.
func (b *bomb) multiplyBlock(id uuid.UUID, n int) {
	b.t.Helper()
	b.edit(id, `\{"type":"image".*`+blobRef+`\}\}`, func(block string) string {
		return strings.TrimSuffix(strings.Repeat(block+",", n), ",")
	})
}

const blobRef = `\{"\$blob":[^{}]*\}`

// edit replaces what a pattern finds in the file of a message.
func (b *bomb) edit(id uuid.UUID, pattern string, change func(found string) string) {
	b.t.Helper()
	if err := b.c.Admin().Seal(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.store, b.c.ID().String(), "messages", "branch-main", id.String()+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindString(string(raw))
	if found == "" {
		b.t.Fatalf("no %s in %.300s", pattern, raw)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), found, change(found), 1)), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

const attached = `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}]}`

func asItIs(ref string) string { return ref }

// asText makes a reference to a text of one to zero bytes.
func asText(ref string) string {
	return strings.NewReplacer(`,"encoding":"base64"`, "", `,"media_type":"image/png"`, "").Replace(ref)
}

const mib = 1 << 20

// TestMemory: whatever sizes a small store claims, no verb uses much memory, and a verb that writes messages verbatim
// writes them completely.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes gigabytes")
	}
	for name, test := range map[string]struct {
		arm  func(b *bomb)
		body int64 // bytes of the messages
		held int64 // what a verb may hold because single messages are large
	}{
		"references":  {func(b *bomb) { b.multiply(b.append(attached, 48*mib), 4, asItIs) }, 4 * 48 * mib / 3 * 4, 0},
		"images":      {func(b *bomb) { b.multiplyBlock(b.append(attached, 30*mib), 9) }, 9 * 40 * mib, 0},
		"one payload": {func(b *bomb) { b.append(attached, 210*mib) }, 280 * mib, 0},
		"escapes":     {func(b *bomb) { b.multiply(b.append(attached, 60*mib), 1, asText) }, 360 * mib, 0},
		"texts":       {func(b *bomb) { b.multiply(b.append(attached, 8*mib), 7, asText) }, 6 * 56 * mib, 0},
		"log":         {func(b *bomb) { b.multiply(b.append(attached, 60<<10), 2500, asItIs) }, 2500 * 80 << 10, 0},
		"segments": {func(b *bomb) {
			for i := range 5 {
				b.append(fmt.Sprintf(`{"role":"user","content":"%d%s"}`, i, bytes.Repeat([]byte("a"), 32*mib)), 0)
			}
			if _, err := b.s.Archive(b.t.Context(), ctxdir.ArchiveOptions{All: true}); err != nil {
				b.t.Fatal(err)
			}
		}, 5 * 32 * mib, 320 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBomb(t)
			test.arm(b)
			id := b.c.ID().String()
			if err := b.c.Close(); err != nil {
				t.Fatal(err)
			}
			for _, verb := range []struct {
				args  []string
				limit int64 // of its memory
				whole bool
			}{
				{[]string{"--json", "show", id}, 160 * mib, true},
				{[]string{"--json", "watch", id, "--tail", "99", "--no-follow"}, 160 * mib, true},
				{[]string{"--json", "show", id, "--range", "0:4"}, 160 * mib, false},
				{[]string{"export", id}, 160 * mib, true},
				{[]string{"export", id, "--format", "openai"}, 8 * maxParsedBody, false},
				{[]string{"export", id, "--format", "html"}, 8 * maxParsedBody, false},
				{[]string{"show", id, "--full"}, 8 * maxParsedBody, false},
				{[]string{"check", "--read-data", id}, 160 * mib, false},
			} {
				m := measure(t, b.store, verb.args...)
				if m.peak > max(verb.limit, test.held) || m.killed {
					t.Errorf("%v took %d MiB", verb.args, m.peak/mib)
				}
				if verb.whole && m.written < test.body {
					t.Errorf("%v wrote %d bytes of %d", verb.args, m.written, test.body)
				}
			}
		})
	}
}

func init() { programs["ctxtool-measured"] = measured }

// measured is the command, which reports its peak memory and the bytes it read. The system ends one that reads for
// ever.
func measured() {
	limit := unix.Rlimit{Cur: 10, Max: 10}
	err := unix.Setrlimit(unix.RLIMIT_CPU, &limit)
	if few, ferr := strconv.ParseUint(os.Getenv("DESCRIPTORS"), 10, 16); ferr == nil {
		err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: few, Max: few}))
	}
	code := mainCode()
	if os.Getenv("MEASURED") == "" {
		os.Exit(code)
	}
	status, serr := os.ReadFile("/proc/self/status")
	io, ierr := os.ReadFile("/proc/self/io")
	peak := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	read := regexp.MustCompile(`rchar: (\d+)`).FindSubmatch(io)
	if err = errors.Join(err, serr, ierr); err == nil {
		err = os.WriteFile(os.Getenv("MEASURED"), fmt.Appendf(nil, "%s %s", peak[1], read[1]), 0o600)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

// measurement is what a run of the command took, in bytes.
type measurement struct {
	written, peak, read int64
	killed              bool // since it worked too long
}

// measure runs the command.
func measure(t *testing.T, store string, args ...string) (m measurement) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "measured")
	cmd := exec.CommandContext(t.Context(), "ctxtool-measured", args...)
	cmd.Env = append(os.Environ(), "CTXDIR_STORE="+store, "CTXDIR_NO_GC=1", "MEASURED="+file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	m.written, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // many fail, as they should
	told, err := os.ReadFile(file)
	if err != nil {
		t.Logf("%v: %v: %v, %.2000s", args, cmd.ProcessState, err, &stderr)
		m.killed = true
		return m
	}
	if _, err := fmt.Sscan(string(told), &m.peak, &m.read); err != nil {
		t.Fatal(err)
	}
	m.peak <<= 10
	return m
}
