package reference

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Kept is what Keep did with lines of files that messages copy.
type Kept struct {
	References int64 // that are stored now
	Messages   int64 // that they are stored with
	Bytes      int64 // of the lines they refer to
	Without    int64 // copies of lines that are not below the root as they were: they stay copies
}

// Add adds what was done with another context.
func (k *Kept) Add(x Kept) {
	k.References, k.Messages = k.References+x.References, k.Messages+x.Messages
	k.Bytes, k.Without = k.Bytes+x.Bytes, k.Without+x.Without
}

// Keep stores references for the lines of files that the messages of a context copy in tool calls and their results, if a
// file below the root of a workspace has exactly these lines now: see [Found] and [Shifted]. Nothing is guessed, and the
// bodies of the messages stay as they are. folders are those of [Of]. A message that has references already is left as it is,
// and so is one whose body is larger than 1 MiB.
//
// Keep may be interrupted: a commit has the references of some messages, and the next call goes on.
func Keep(ctx context.Context, c *ctxdir.Context, root string, folders ...string) (kept Kept, err error) {
	infos, err := c.Branches(ctx)
	if err != nil {
		return kept, err
	}
	k := keeper{c: c, root: root, folders: append([]string{root}, folders...), kept: &kept}
	done := map[uuid.UUID]int64{}
	for _, b := range infos {
		from := int64(0)
		for _, s := range b.Lines {
			if err := k.messages(ctx, b.Name, max(from, done[s.Line]), s.End); err != nil {
				return kept, err
			}
			done[s.Line] = max(done[s.Line], s.End)
			from = s.End
		}
		if err := k.flush(ctx, b.Name); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// Bounds of what Keep has in memory.
const (
	keepBody = 1 << 20 // bytes of a body
	keepAll  = 4 << 20 // bytes of bodies in a commit
	keepRefs = 2000    // references that are looked for at once
)

// keeper collects messages of a branch, and stores references with them.
type keeper struct {
	c       *ctxdir.Context
	root    string
	folders []string
	kept    *Kept
	of      []*ctxdir.Message
	n       []int // references of each
	refs    []Ref
	size    int
}

func (k *keeper) messages(ctx context.Context, branch string, from, to int64) error {
	b, err := k.c.Branch(branch)
	if err != nil {
		return err
	}
	for m, err := range b.Messages(ctx, from, to) {
		if err != nil {
			return err
		}
		if m.Unavailable != nil || len(m.References) > 0 || len(m.Stored) > keepBody {
			continue
		}
		refs, err := Of(ctx, m, k.folders...)
		if err != nil || len(refs) == 0 { // what cannot be read cannot be referred to
			continue
		}
		k.of, k.n, k.refs = append(k.of, m), append(k.n, len(refs)), append(k.refs, refs...)
		if k.size += len(m.Stored); k.size < keepAll && len(k.refs) < keepRefs {
			continue
		}
		if err := k.flush(ctx, branch); err != nil {
			return err
		}
	}
	return nil
}

// flush stores the references of the messages that were collected, as one commit.
func (k *keeper) flush(ctx context.Context, branch string) error {
	all, err := Resolve(ctx, k.root, k.refs)
	if err != nil {
		return err
	}
	type change struct {
		m    *ctxdir.Message
		refs []Ref
	}
	var changes []change
	done := Kept{}
	for i, m := range k.of {
		var refs []Ref
		for j := range all[:k.n[i]] {
			r, was := &all[j], &k.refs[j]
			switch {
			case was.Sum == "": // the message has the name of the file alone
			case r.Status != Found && r.Status != Shifted:
				done.Without++
			default:
				refs = append(refs, Ref{File: r.File, Lines: r.Lines, Blob: r.Blob, Sum: was.Sum, Size: was.Size, Context: was.Context})
				done.Bytes += was.Size
			}
		}
		all, k.refs = all[k.n[i]:], k.refs[k.n[i]:]
		if len(refs) > 0 {
			changes = append(changes, change{m, refs})
			done.Messages, done.References = done.Messages+1, done.References+int64(len(refs))
		}
	}
	k.of, k.n, k.refs, k.size = nil, nil, nil, 0
	if len(changes) > 0 {
		_, err = k.c.Commit(ctx, func(tx *ctxdir.Tx) error {
			for _, x := range changes {
				body, err := x.m.Body(ctx)
				if err == nil {
					err = tx.Replace(branch, x.m.ID, ctxdir.Draft{
						Body: body, Role: x.m.Role, Type: x.m.Type, CreatedAt: x.m.CreatedAt, OriginID: x.m.OriginID, Source: x.m.Source,
						References: Encode(x.refs),
					}, ctxdir.WriteOptions{Shared: true})
				}
				if err != nil {
					return fmt.Errorf("message %s: %w", x.m.ID, err)
				}
			}
			return nil
		})
	}
	if err == nil {
		k.kept.Add(done)
	}
	return err
}
