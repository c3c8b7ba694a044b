package index

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// PackDamage is a damaged part of a pack.
type PackDamage struct {
	Pack uuid.UUID
	archive.Damage
}

// VerifyPacks yields the damage in packs that lines are read from. With data it reads them whole, else it opens them.
func (l *Log) VerifyPacks(ctx stdcontext.Context, data bool) iter.Seq2[PackDamage, error] {
	return func(yield func(PackDamage, error) bool) {
		ids, err := l.Packs()
		for _, id := range ids {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				break
			}
			var more bool
			if more, err = l.verifyPack(id, data, yield); !more {
				return
			}
		}
		if err != nil {
			yield(PackDamage{}, err)
		}
	}
}

func (l *Log) verifyPack(id uuid.UUID, data bool, yield func(PackDamage, error) bool) (more bool, err error) {
	folder, err := l.dir.FS.Sub(ctxfolder.Archive)
	var p *archive.Pack
	if err == nil {
		defer folder.Close()
		p, err = archive.Open(folder, archive.FileName(id))
	}
	if err != nil {
		err = noPack(l.dir.FS, id, err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil // reading the index reports it, and it may be gone since
	case errors.Is(err, ErrDamaged):
		return yield(PackDamage{id, archive.Damage{Part: "tables", Err: err}}, nil), nil
	case err != nil:
		return true, err
	}
	defer p.Close() //nolint:errcheck // it was read
	if !data {
		return true, nil
	}
	for d := range p.Verify() {
		if !yield(PackDamage{id, d}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// ArchivedVersion is a version of a message in a pack, whether it counts or not.
type ArchivedVersion struct {
	Pack     uuid.UUID
	ID       uuid.UUID // of the message
	Envelope []byte    // nil if it is damaged
}

// ArchivedVersions yields all versions of some messages in the existing packs, pack by pack. It fails with an error
// that wraps ErrDamaged if an unreadable part of a pack may hold one.
func (l *Log) ArchivedVersions(ids map[uuid.UUID]bool) iter.Seq2[ArchivedVersion, error] {
	return func(yield func(ArchivedVersion, error) bool) {
		packs, err := packIDs(l.dir)
		if err != nil {
			yield(ArchivedVersion{}, err)
			return
		}
		for _, id := range packs {
			p, err := l.openPack(id)
			if err != nil && !errors.Is(err, ErrDamaged) {
				yield(ArchivedVersion{}, err)
				return
			}
			if p == nil {
				continue // nothing in it is readable
			}
			rest := maps.Clone(ids)
			more := p.versions(ids, func(v ArchivedVersion, err error) bool {
				delete(rest, v.ID)
				return yield(v, err)
			})
			doubt, err := archive.MayHold(p.folder, archive.FileName(id), rest)
			p.Release()
			if !more {
				return
			}
			if doubt {
				err = fmt.Errorf("%w: pack %s may hold the message in its damaged part; repair the context first", ErrDamaged, id)
			}
			if err != nil {
				yield(ArchivedVersion{}, err)
				return
			}
		}
	}
}

func (p *openPack) versions(ids map[uuid.UUID]bool, yield func(ArchivedVersion, error) bool) (more bool) {
	more = true
	for id := range ids {
		seen := map[archive.Place]bool{}
		p.find(id, func(r archive.Row) bool {
			if !seen[r.Place] {
				seen[r.Place] = true
				raw, _ := p.get().ReadMessage(r)
				more = yield(ArchivedVersion{p.id, id, raw}, nil)
			}
			return more
		})
		if !more {
			break
		}
	}
	return more
}

// EachArchived calls f for each whole message in any pack of a context, whether it counts or not.
func EachArchived(dir *ctxfolder.Dir, f func(*message.Envelope)) error {
	return EachArchivedEnvelope(dir, func(raw []byte) {
		if env, err := message.ParseTrusted(raw); err == nil {
			f(&env)
		}
	})
}

// EachArchivedEnvelope is EachArchived for the bytes of the messages, which are valid until f returns.
func EachArchivedEnvelope(dir *ctxfolder.Dir, f func(raw []byte)) error {
	ids, err := packIDs(dir)
	if err != nil || len(ids) == 0 {
		return err
	}
	folder, err := dir.FS.Sub(ctxfolder.Archive)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, id := range ids {
		for found, err := range archive.Scan(folder, archive.FileName(id)) {
			if err != nil {
				if err = noPack(dir.FS, id, err); !errors.Is(err, ErrDamaged) {
					return err
				}
				break
			}
			if found.Envelope != nil {
				f(found.Envelope)
			}
		}
	}
	return nil
}
