package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// outcome is what archiving makes of a conversation.
type outcome struct {
	*conversation
	plain, archived size  // the context's folder without logs and trash, and its blobs that no other context has
	segments        int64 // bytes of the segments
	one             time.Duration
	slowest         time.Duration
	branch, files   time.Duration // all messages of each branch, archived and not
}

// archived archives every context of a store that is a copy of another one, and prints what became of them.
func archived(out io.Writer, plain, copied string, contexts []*conversation) error {
	ctx := context.Background()
	a, err := ctxdir.Open(plain, ctxdir.Options{CacheSize: -1})
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := ctxdir.Open(copied, ctxdir.Options{CacheSize: -1})
	if err != nil {
		return err
	}
	defer b.Close()
	for _, c := range contexts {
		if err := archiveOne(ctx, b, c.id); err != nil {
			return err
		}
	}
	if err := collect(ctx, b); err != nil {
		return err
	}
	fmt.Fprintln(out, "| context | messages | bytes | segments to `zstd -10` | bytes | blocks | read one | the slowest | branches, to files |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	rest, total := outcome{conversation: &conversation{name: "the rest"}}, outcome{conversation: &conversation{name: "**all**"}}
	var ones []time.Duration
	var rows []outcome
	for _, c := range contexts {
		o := outcome{conversation: c}
		if err := o.sizes(plain, copied); err != nil {
			return err
		}
		each, err := o.times(ctx, a, b)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		ones = append(ones, each...)
		total.merge(&o)
		if c.raw <= large {
			rest.merge(&o)
			continue
		}
		o.print(out)
		rows = append(rows, o)
	}
	total.one = median(ones)
	rest.print(out)
	total.print(out)
	goals(out, append(rows, rest))
	return nil
}

// goals prints which rows reach what archiving is to reach.
func goals(out io.Writer, rows []outcome) {
	fmt.Fprintln(out, "\nGoals, for each context above 256 KiB by itself and for the rest together:")
	fmt.Fprintln(out)
	for _, goal := range []struct {
		text string
		met  func(*outcome) bool
	}{
		{"84 % fewer bytes", func(o *outcome) bool { return percent(o.archived.bytes, o.plain.bytes) <= 16 }},
		{"90 % fewer blocks", func(o *outcome) bool { return percent(o.archived.blocks, o.plain.blocks) <= 10 }},
		{"at most 1.35 times `zstd -10`", func(o *outcome) bool { return float64(o.segments) <= 1.35*float64(o.zstd10) }},
		{"one message within 1 ms, in the median", func(o *outcome) bool { return o.one <= time.Millisecond }},
		{"branches no slower than from files", func(o *outcome) bool { return o.branch <= o.files }},
	} {
		var missed []string
		for i := range rows {
			if !goal.met(&rows[i]) {
				missed = append(missed, rows[i].short())
			}
		}
		fmt.Fprintf(out, "- %s: %d of %d", goal.text, len(rows)-len(missed), len(rows))
		if len(missed) > 0 {
			fmt.Fprintf(out, "; not %s", strings.Join(missed, ", "))
		}
		fmt.Fprintln(out)
	}
}

// short is the name in the table.
func (o *outcome) short() string {
	if len(o.name) == 36 {
		return o.name[:8]
	}
	return o.name
}

func archiveOne(ctx context.Context, s *ctxdir.Store, id uuid.UUID) error {
	done, err := s.Archive(ctx, ctxdir.ArchiveOptions{Contexts: []uuid.UUID{id}})
	for _, d := range done {
		if d.Stayed > 0 {
			err = errors.Join(err, fmt.Errorf("%d messages of %s were not archived", d.Stayed, id))
		}
	}
	return err
}

// collect moves blobs that nothing refers to to the trash, and empties it.
func collect(ctx context.Context, s *ctxdir.Store) error {
	for range 2 {
		if _, err := s.Collect(ctx, ctxdir.CollectOptions{All: true}); err != nil {
			return err
		}
	}
	return nil
}

func (o *outcome) merge(c *outcome) {
	o.messages = append(o.messages, c.messages...)
	o.raw, o.zstd10, o.segments = o.raw+c.raw, o.zstd10+c.zstd10, o.segments+c.segments
	o.plain.add(c.plain)
	o.archived.add(c.archived)
	o.branch, o.files = o.branch+c.branch, o.files+c.files
	o.one, o.slowest = max(o.one, c.one), max(o.slowest, c.slowest)
}

func (o *outcome) print(out io.Writer) {
	saved := func(after, before int64) float64 { return 100 - percent(after, before) }
	fmt.Fprintf(out, "| %s | %d | %d | %.3f | −%.1f %% | −%.1f %% | %d µs | %d µs | %.2f |\n", o.short(), len(o.messages), o.raw,
		float64(o.segments)/float64(o.zstd10), saved(o.archived.bytes, o.plain.bytes), saved(o.archived.blocks, o.plain.blocks),
		o.one.Microseconds(), o.slowest.Microseconds(), float64(o.branch)/float64(o.files))
}

// sizes measures folders and blobs.
func (o *outcome) sizes(plain, copied string) (err error) {
	for store, s := range map[string]*size{plain: &o.plain, copied: &o.archived} {
		if err := folderSize(filepath.Join(store, o.name), s); err != nil {
			return err
		}
		for _, path := range o.blobs {
			b, err := sizeOf(filepath.Join(store, path))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			s.add(b)
		}
	}
	var segments size
	err = folderSize(filepath.Join(copied, o.name, "segments"), &segments)
	o.segments = segments.bytes
	return err
}

// folderSize adds up the files of a context but for its logs and its trash.
func folderSize(folder string, s *size) error {
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "log-") || filepath.Dir(path) == filepath.Join(folder, "trash") {
			return err
		}
		f, err := sizeOf(path)
		s.add(f)
		return err
	})
}

// times measures reading one message of an open context, nothing of which was read before, and all messages of all
// branches.
func (o *outcome) times(ctx context.Context, plain, copied *ctxdir.Store) (ones []time.Duration, err error) {
	r := rand.New(rand.NewPCG(1, 2))
	one := func(i int) error {
		c, err := copied.Open(ctx, o.id)
		if err != nil {
			return err
		}
		defer c.Close()
		at, err := places(ctx, c)
		if err != nil {
			return err
		}
		p := at[i%len(at)]
		b, err := c.Branch(p.branch)
		if err != nil {
			return err
		}
		start := time.Now()
		m, err := b.Range(ctx, p.position, p.position+1)
		ones = append(ones, time.Since(start))
		if err == nil && (len(m) != 1 || m[0].Unavailable != nil) {
			err = fmt.Errorf("position %d of %s cannot be read", p.position, p.branch)
		}
		return err
	}
	for range 60 {
		if err := one(r.IntN(1 << 30)); err != nil {
			return nil, err
		}
	}
	o.one = median(slices.Clone(ones))
	o.slowest = slices.Max(ones)
	var branches, files []time.Duration
	for range rounds {
		d, err := readAll(ctx, copied, o.id)
		if err != nil {
			return nil, err
		}
		branches = append(branches, d)
		if d, err = readAll(ctx, plain, o.id); err != nil {
			return nil, err
		}
		files = append(files, d)
	}
	o.branch, o.files = median(branches), median(files)
	return ones, nil
}

type place struct {
	branch   string
	position int64
}

func places(ctx context.Context, c *ctxdir.Context) (all []place, err error) {
	infos, err := c.Branches(ctx)
	for _, info := range infos {
		for p := info.Base; p < info.Messages; p++ {
			all = append(all, place{info.Name, p})
		}
	}
	return all, err
}

// readAll reads every branch of a context that was just opened.
func readAll(ctx context.Context, s *ctxdir.Store, id uuid.UUID) (time.Duration, error) {
	c, err := s.Open(ctx, id)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	infos, err := c.Branches(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	for _, info := range infos {
		b, err := c.Branch(info.Name)
		if err != nil {
			return 0, err
		}
		if _, err := b.Range(ctx, 0, ctxdir.End); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// copyStore copies a store's files, with their times.
func copyStore(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, inside)
		if e.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if err := os.WriteFile(at, b, 0o600); err != nil {
			return err
		}
		return os.Chtimes(at, info.ModTime(), info.ModTime())
	})
}
