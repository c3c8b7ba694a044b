package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// gap takes the place of an unavailable message in the trash.
type gap struct {
	Version  string    `json:"ctxdir"`
	Position int64     `json:"position"`
	ID       uuid.UUID `json:"id"`
	Reason   string    `json:"reason"`
}

const gapVersion = "gap/1"

// isPiece reports whether a path, in a store's or a context's folder, is a file of messages in a trash item.
func isPiece(p string) bool {
	item, name := path.Split(p)
	var n int
	_, err := fmt.Sscanf(name, "messages-%d.jsonl", &n)
	return err == nil && name == ctxfolder.PieceFile(n) && path.Dir(path.Clean(item)) == ctxfolder.Trash
}

// keptMessage is a message in a trash item, or the gap in its place.
type keptMessage struct {
	message.Envelope
	raw []byte
	gap *gap
}

// recount sets an envelope's number of references to that in its message, and reports whether that changed it. After an
// edit by hand the number can be wrong, and a sweep relies on it.
func recount(env *message.Envelope) bool {
	was := env.Payloads
	env.Payloads = blob.Count(env.Body)
	return env.Payloads != was
}

// kept yields the messages of an item that holds the end of a line, in order. An error ends the sequence. It wraps
// [ErrDamaged] if the item is not as it was written.
func kept(fsys vfs.FS, item string, info *ctxfolder.TrashItem) iter.Seq2[*keptMessage, error] {
	return func(yield func(*keptMessage, error) bool) {
		next := info.From
		n := 1
		for ; next < info.To; n++ {
			b, err := vfs.ReadFile(fsys, item+"/"+ctxfolder.PieceFile(n), ctxfolder.MaxMessage)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: %s ends at position %d, not at %d", ErrDamaged, item, next, info.To)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for line := range bytes.Lines(b) {
				k, err := parseKept(bytes.TrimSuffix(line, []byte("\n")))
				if err == nil && (k.Position != next || k.gap == nil && k.Line != info.Line || next >= info.To) {
					err = fmt.Errorf("it is message %d of line %s", k.Position, k.Line)
				}
				if err != nil {
					err = fmt.Errorf("%w: %s, position %d: %w", ErrDamaged, item, next, err)
				}
				if !yield(k, err) || err != nil {
					return
				}
				next++
			}
		}
		if _, err := fsys.Lstat(item + "/" + ctxfolder.PieceFile(n)); err == nil {
			yield(nil, fmt.Errorf("%w: %s has more than the positions from %d to %d", ErrDamaged, item, info.From, info.To))
		}
	}
}

func parseKept(line []byte) (*keptMessage, error) {
	k := &keptMessage{raw: line}
	if bytes.HasPrefix(line, []byte(`{"ctxdir":"`+gapVersion+`"`)) {
		if err := json.Unmarshal(line, &k.gap); err != nil {
			return nil, err
		}
		if k.gap.Reason == "" {
			k.gap.Reason = "lost" // without a reason its row would be that of a message
		}
		k.ID, k.Position = k.gap.ID, k.gap.Position
		return k, nil
	}
	env, err := message.Parse(line)
	k.Envelope = env
	return k, err
}
