package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// outcome is what archiving makes of a conversation.
type outcome struct {
	*conversation
	pack          size // messages and tables alone
	full          size // with the payloads
	one           time.Duration
	branch, plain time.Duration // all messages, from the pack and from files
}

// packs prints what package archive makes of each conversation.
func packs(dir string, contexts []*conversation) error {
	fsys, err := vfs.OS(dir)
	if err != nil {
		return err
	}
	defer fsys.Close()
	fmt.Println("What stays beside the pack: metadata.json and index.json. *Folder* is message files, rows, these two and the blobs that no other")
	fmt.Println("context has; in brackets with the blobs left where they are.")
	fmt.Println()
	fmt.Println("| context | messages | bytes | blobs | pack to `zstd -10` | folder, bytes | folder, blocks | without blobs, bytes | read one | all, to files |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	rest, total := outcome{conversation: &conversation{name: "the rest"}}, outcome{conversation: &conversation{name: "**all**"}}
	for _, c := range contexts {
		o, err := measure(fsys, dir, c)
		if err != nil {
			return err
		}
		total.merge(&o)
		if c.raw <= large {
			rest.merge(&o)
			continue
		}
		o.print()
	}
	rest.print()
	total.print()
	return nil
}

func (o *outcome) merge(c *outcome) {
	o.messages = append(o.messages, c.messages...)
	o.raw += c.raw
	o.zstd10 += c.zstd10
	o.rows.add(c.rows)
	o.metadata.add(c.metadata)
	o.files.add(c.files)
	o.blobs.add(c.blobs)
	o.pack.add(c.pack)
	o.full.add(c.full)
	o.branch += c.branch
	o.plain += c.plain
	o.one = max(o.one, c.one)
}

func (o *outcome) print() {
	before, after := o.files, o.full
	before.add(o.rows)
	before.add(o.metadata)
	bare := before.bytes
	before.add(o.blobs)
	after.add(o.metadata)
	left := o.pack
	left.add(o.metadata)
	bareAfter := left.bytes
	left.add(o.blobs)
	name := o.name
	if len(name) == 36 {
		name = name[:8]
	}
	saved := func(after, before int64) float64 { return 100 - percent(after, before) }
	fmt.Printf("| %s | %d | %d | %d | %.3f | −%.1f %% (−%.1f %%) | −%.1f %% (−%.1f %%) | −%.1f %% | %d µs | %.2f |\n", name, len(o.messages), o.raw, o.blobs.bytes,
		float64(o.pack.bytes)/float64(o.zstd10), saved(after.bytes, before.bytes), saved(left.bytes, before.bytes),
		saved(after.blocks, before.blocks), saved(left.blocks, before.blocks), saved(bareAfter, bare), o.one.Microseconds(), float64(o.branch)/float64(o.plain))
}

func measure(fsys vfs.FS, dir string, c *conversation) (outcome, error) {
	o := outcome{conversation: c}
	name, err := pack(fsys, c, nil)
	if err != nil {
		return o, err
	}
	if o.pack, err = sizeOf(filepath.Join(dir, name)); err != nil {
		return o, err
	}
	full := name
	if o.full = o.pack; len(c.payloads) > 0 {
		if full, err = pack(fsys, c, c.payloads); err != nil {
			return o, err
		}
		if o.full, err = sizeOf(filepath.Join(dir, full)); err != nil {
			return o, err
		}
	}
	if err := o.time(fsys, name); err != nil {
		return o, err
	}
	return o, os.Remove(filepath.Join(dir, name))
}

func pack(fsys vfs.FS, c *conversation, payloads [][]byte) (string, error) {
	w, err := archive.Create(fsys)
	if err != nil {
		return "", err
	}
	defer w.Abort()
	for _, m := range c.messages {
		if err := w.Add(bytes.TrimSuffix(m.content, []byte("\n"))); err != nil {
			return "", err
		}
	}
	for _, b := range payloads {
		if _, err := w.AddPayload(b); err != nil {
			return "", err
		}
	}
	_, err = w.Commit()
	return archive.FileName(w.ID()), err
}

// time measures reading one message, the pack opened for it, and all messages, from the pack and from the files.
func (o *outcome) time(fsys vfs.FS, name string) error {
	var ones, branches, plains []time.Duration
	folders := folders{}
	defer folders.close()
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		m := o.messages[r.IntN(len(o.messages))]
		start := time.Now()
		p, err := archive.Open(fsys, name)
		if err != nil {
			return err
		}
		row, err := p.Lookup(m.line, m.position)
		if err != nil {
			return err
		}
		b, err := p.ReadMessage(row)
		ones = append(ones, time.Since(start))
		p.Close()
		if err != nil || !bytes.Equal(b, bytes.TrimSuffix(m.content, []byte("\n"))) {
			return fmt.Errorf("position %d of %s: other bytes: %w", m.position, m.line, err)
		}
	}
	for range rounds {
		start := time.Now()
		if err := readPack(fsys, name); err != nil {
			return err
		}
		branches = append(branches, time.Since(start))
		start = time.Now()
		for _, m := range o.messages {
			folder, err := folders.open(filepath.Dir(m.path))
			if err != nil {
				return err
			}
			if _, err := vfs.LoadFile(folder, filepath.Base(m.path), int64(len(m.content))); err != nil {
				return err
			}
		}
		plains = append(plains, time.Since(start))
	}
	o.one, o.branch, o.plain = median(ones), median(branches), median(plains)
	return nil
}

func readPack(fsys vfs.FS, name string) error {
	p, err := archive.Open(fsys, name)
	if err != nil {
		return err
	}
	defer p.Close()
	for run, err := range p.Runs() {
		if err != nil {
			return err
		}
		for _, err := range p.Messages(run.Line, run.From, run.To) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// folders are the message folders that were opened: a file is opened, read and closed in the fewest calls there are.
type folders map[string]vfs.FS

func (f folders) open(path string) (vfs.FS, error) {
	if f[path] == nil {
		fsys, err := vfs.OS(path)
		if err != nil {
			return nil, err
		}
		f[path] = fsys
	}
	return f[path], nil
}

func (f folders) close() {
	for _, fsys := range f {
		fsys.Close()
	}
}
