package trash

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
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Gap takes the place of an unavailable message in the trash.
type Gap struct {
	Version  string    `json:"ctxdir"`
	Position int64     `json:"position"`
	ID       uuid.UUID `json:"id"`
	Reason   string    `json:"reason"`
}

// GapVersion is the version of a [Gap]. It distinguishes a gap from a message.
const GapVersion = "gap/1"

// IsPiece reports whether a path, in a store's or a context's folder, is a file of messages in a trash item.
func IsPiece(p string) bool {
	item, name := path.Split(p)
	var n int
	_, err := fmt.Sscanf(name, "messages-%d.jsonl", &n)
	return err == nil && name == ctxfolder.PieceFile(n) && path.Dir(path.Clean(item)) == ctxfolder.Trash
}

// itemMessage is a message in a trash item, or the gap in its place.
type itemMessage struct {
	message.Envelope
	raw []byte
	Gap *Gap
}

// recount sets an envelope's number of references to that in its message, and reports whether that changed it. After an
// edit by hand the number can be wrong, and a sweep relies on it.
func recount(env *message.Envelope) bool {
	was := env.Payloads
	env.Payloads = blob.Count(env.Body)
	return env.Payloads != was
}

// itemMessages yields the messages of an item that holds the end of a line, in order. An error ends the sequence. It
// wraps [engine.ErrDamaged] if the item is not as it was written.
func itemMessages(fsys vfs.FS, item string, info *ctxfolder.TrashItem) iter.Seq2[*itemMessage, error] {
	return func(yield func(*itemMessage, error) bool) {
		next := info.From
		n := 1
		for ; next < info.To; n++ {
			b, err := vfs.ReadFile(fsys, item+"/"+ctxfolder.PieceFile(n), ctxfolder.MaxMessage)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: %s ends at position %d, not at %d", engine.ErrDamaged, item, next, info.To)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for line := range bytes.Lines(b) {
				k, err := ParseMessage(bytes.TrimSuffix(line, []byte("\n")))
				if err == nil && (k.Position != next || k.Gap == nil && k.Line != info.Line || next >= info.To) {
					err = fmt.Errorf("it is message %d of line %s", k.Position, k.Line)
				}
				if err != nil {
					err = fmt.Errorf("%w: %s, position %d: %w", engine.ErrDamaged, item, next, err)
				}
				if !yield(k, err) || err != nil {
					return
				}
				next++
			}
		}
		if _, err := fsys.Lstat(item + "/" + ctxfolder.PieceFile(n)); err == nil {
			yield(nil, fmt.Errorf("%w: %s has more than the positions from %d to %d", engine.ErrDamaged, item, info.From, info.To))
		}
	}
}

// ParseMessage parses a line of a file of messages in an item: a message, or the [Gap] in its place.
func ParseMessage(line []byte) (*itemMessage, error) {
	k := &itemMessage{raw: line}
	if bytes.HasPrefix(line, []byte(`{"ctxdir":"`+GapVersion+`"`)) {
		if err := json.Unmarshal(line, &k.Gap); err != nil {
			return nil, err
		}
		if k.Gap.Reason == "" {
			k.Gap.Reason = "lost" // without a reason its row would be that of a message
		}
		k.ID, k.Position = k.Gap.ID, k.Gap.Position
		return k, nil
	}
	env, err := message.Parse(line)
	k.Envelope = env
	return k, err
}
