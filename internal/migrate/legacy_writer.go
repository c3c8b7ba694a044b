package migrate

import (
	"context"
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// legacyWriter writes a context part by part as a legacy one.
type legacyWriter struct {
	c        *engine.Context
	lenient  bool // unavailable messages are left out and counted
	progress func(done, all int64)

	load     *loader.Loader // it keeps no messages, since each is read once
	m        *engine.Metadata
	from     *Origin
	of       []*BranchOrigin                 // what each branch keeps
	first    map[uuid.UUID]bool              // lines of messages that no list named
	shown    map[uuid.UUID]int64             // how far some branch shows each line
	keys     map[linePosition]jsontext.Value // of messages whose key is not their id
	written  map[[16]byte]uint64             // keys in the pool, with sums of their messages
	messages int64                           // so far
	missing  int64
	all      int64
}

// linePosition is a position of a line.
type linePosition struct {
	line     uuid.UUID
	position int64
}

// isBranch reports whether a branch is one in a legacy context too. A branch that the migration made, for unlisted
// messages or because there was none, is not one while it is unchanged. A switch to it or a rename changes it; a
// rewound branch has another line.
func (r *legacyWriter) isBranch(b *ctxfolder.Branch, of *BranchOrigin) bool {
	if !of.Made && of.Unlisted == 0 {
		return true
	}
	return r.length(b) != of.Unlisted || b.Name != of.as || b.Line != of.line || r.m.ActiveBranch == b.Name && r.from.active != b.Name
}

func (r *legacyWriter) length(b *ctxfolder.Branch) int64 {
	n, err := r.c.End(r.m, b.Line)
	if err != nil {
		return 0
	}
	return n
}

// measure determines what the branches show.
func (r *legacyWriter) measure() error {
	r.shown, r.first = map[uuid.UUID]int64{}, map[uuid.UUID]bool{}
	for _, b := range r.m.Branches {
		of := ParseBranchOrigin(&b)
		r.of = append(r.of, of)
		if of.Unlisted > 0 {
			r.first[of.line] = true
		}
		end, err := r.c.End(r.m, b.Line)
		if err != nil {
			return err
		}
		lines, err := branch.Lines(r.m, b.Line, end)
		if err != nil {
			return err
		}
		for _, l := range lines {
			r.shown[l.Line] = max(r.shown[l.Line], l.To)
		}
	}
	for _, l := range r.m.Lines {
		r.all += max(0, r.shown[l.ID]-l.Base)
	}
	return nil
}

// pool yields the node of every message that a branch shows, once. Messages that share a key with a later one come
// first.
func (r *legacyWriter) pool(ctx context.Context) iter.Seq2[legacy.Node, error] {
	return func(yield func(legacy.Node, error) bool) {
		for _, first := range []bool{true, false} {
			for i := range r.m.Lines {
				line := &r.m.Lines[i]
				if r.first[line.ID] != first || r.shown[line.ID] <= line.Base {
					continue
				}
				if more, err := r.line(ctx, line, yield); err != nil {
					yield(legacy.Node{}, err)
					return
				} else if !more {
					return
				}
			}
		}
	}
}

func (r *legacyWriter) line(ctx context.Context, line *ctxfolder.Line, yield func(legacy.Node, error) bool) (more bool, err error) {
	parent, err := r.parentKey(line)
	if err != nil {
		return false, err
	}
	span := loader.Span{Line: line.ID, Folder: line.Folder, From: line.Base, To: r.shown[line.ID]}
	more = true
	eerr := r.load.Each(ctx, []loader.Span{span}, loader.Plainly, func(m *engine.Message) bool {
		var n legacy.Node
		var is bool
		if n, is, err = r.node(ctx, m, parent); err != nil {
			return false
		}
		parent = r.key(line.ID, m.Position, m.ID)
		if r.progress != nil {
			r.progress(r.messages, r.all)
		}
		if is {
			r.messages++
			more = yield(n, nil)
		}
		return more
	})
	if err == nil {
		err = eerr
	}
	return more, err
}

// parentKey returns the key of the message before a line's own first one, null without one.
func (r *legacyWriter) parentKey(line *ctxfolder.Line) (jsontext.Value, error) {
	if line.Base == 0 {
		return jsontext.Value("null"), nil
	}
	segments, err := branch.Segments(r.m, line.ID, line.Base-1, line.Base)
	if err != nil {
		return nil, err
	}
	id, err := r.c.IDBefore(r.m, line.ID, line.Base)
	return r.key(segments[0].Line, line.Base-1, id), err
}

// key returns the key of a message in a legacy context.
func (r *legacyWriter) key(line uuid.UUID, position int64, id uuid.UUID) jsontext.Value {
	if k, ok := r.keys[linePosition{line, position}]; ok {
		return k
	}
	return quoteID(id)
}

// node makes the node of a message. is is false where the pool already has it.
func (r *legacyWriter) node(ctx context.Context, m *engine.Message, parent jsontext.Value) (n legacy.Node, is bool, err error) {
	var body []byte
	why := m.Unavailable
	if why == nil {
		body, why = m.Body(ctx)
	}
	if why != nil {
		if err := ctx.Err(); err != nil {
			return n, false, err
		}
		if r.missing++; r.lenient {
			return n, false, nil
		}
		return n, false, fmt.Errorf("message %s: %w", m.ID, why)
	}
	origin := legacy.ParseSource(m.Source)
	n.Key = quoteID(m.ID)
	if origin != nil && origin.Key != nil {
		n.Key = origin.Key
		r.keys[linePosition{m.Line, m.Position}] = n.Key
	}
	if origin == nil || !origin.Shadowed {
		// A node is in the pool once. Two versions of a message, which two branches may have, become two nodes.
		text, _ := legacy.Text(n.Key)
		sum := xxhash.Sum64(body)
		if before, there := r.written[legacy.KeyOf(text)]; there && before == sum {
			return n, false, nil
		} else if there {
			n.Key = quoteID(message.DerivedID(m.Line, m.ID.String()))
			r.keys[linePosition{m.Line, m.Position}] = n.Key
			origin = nil
		}
		text, _ = legacy.Text(n.Key)
		r.written[legacy.KeyOf(text)] = sum
	}
	if origin == nil {
		n.Value = legacy.NewNode(n.Key, parent, m.Role, m.CreatedAt, body)
		n.InFile = r.from.format == legacy.Split
		return n, true, nil
	}
	n.Value = origin.Build(n.Key, body)
	n.InFile = r.from.format == legacy.Split && !origin.Inline
	return n, true, nil
}
