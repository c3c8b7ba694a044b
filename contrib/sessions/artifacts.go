package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

const artifactKind = "artifact"

// Artifacts keeps files of sessions, with all their versions. Each file is a context, and each version a message, which
// moves its data to a blob. The names of files that begin with "user:" belong to the user, in all sessions.
type Artifacts struct {
	store *ctxdir.Store
	tool  string
}

// NewArtifacts returns the files of a framework; tool is its name.
func NewArtifacts(store *ctxdir.Store, tool string) *Artifacts { return &Artifacts{store, tool} }

// Version is a version of a file.
type Version struct {
	Number int64
	Type   string // its media type
	Time   time.Time
	Body   json.RawMessage // the framework's object
}

// deletedType is the type of a message that stands for a deleted version.
const deletedType = "deleted"

func (a *Artifacts) externalID(k Key, file string) string {
	if strings.HasPrefix(file, UserPrefix) {
		k.ID = ""
	}
	return externalID(a.tool, k.App, k.User, k.ID, file)
}

func (a *Artifacts) contextID(k Key, file string) uuid.UUID {
	return ctxdir.ContextID(artifactKind, a.externalID(k, file))
}

// Save adds a version, and returns its number. The first one is 1. v.Number and v.Time are ignored.
func (a *Artifacts) Save(ctx context.Context, k Key, file string, v Version) (number int64, err error) {
	m := ctxdir.Metadata{
		Kind: artifactKind, ExternalID: a.externalID(k, file), Title: file,
		Labels: map[string]string{"tool": a.tool, "app": k.App, "user": k.User},
	}
	err = a.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		at, err := c.Active().Append(ctx, ctxdir.Draft{Type: v.Type, Body: v.Body})
		number = at.Position + 1
		return err
	})
	return number, err
}

// use calls f with the branch of a file that exists, and its length. A missing file is [fs.ErrNotExist].
func (a *Artifacts) use(ctx context.Context, k Key, file string, f func(b *ctxdir.Branch, n int64) error) error {
	err := a.store.Use(ctx, a.contextID(k, file), func(c *ctxdir.Context) error {
		n, err := c.Active().Len(ctx)
		if err != nil {
			return err
		}
		return f(c.Active(), n)
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		return notFound(file)
	}
	return err
}

func notFound(file string) error { return fmt.Errorf("artifact %q: %w", file, fs.ErrNotExist) }

// Load returns a version of a file; number 0 is the newest. A missing version is [fs.ErrNotExist].
func (a *Artifacts) Load(ctx context.Context, k Key, file string, number int64) (v Version, err error) {
	err = a.use(ctx, k, file, func(b *ctxdir.Branch, n int64) error {
		at, first := number, number
		if number == 0 {
			at, first = n, 1
		}
		for ; at >= max(first, 1) && at <= n; at-- {
			found, err := b.Range(ctx, at-1, at)
			if err != nil {
				return err
			}
			if m := found[0]; m.Type != deletedType {
				v = Version{Number: at, Type: m.Type, Time: m.StoredAt}
				v.Body, err = m.Body(ctx)
				return err
			}
		}
		return notFound(file)
	})
	return v, err
}

// Versions returns the numbers of the versions of a file. It fails with [fs.ErrNotExist] if there is none.
func (a *Artifacts) Versions(ctx context.Context, k Key, file string) (numbers []int64, err error) {
	err = a.use(ctx, k, file, func(b *ctxdir.Branch, n int64) error {
		for m, err := range b.Messages(ctx, 0, n) {
			if err != nil {
				return err
			}
			if m.Type != deletedType {
				numbers = append(numbers, m.Position+1)
			}
		}
		if len(numbers) == 0 {
			return notFound(file)
		}
		return nil
	})
	return numbers, err
}

// List returns the files of a session and of its user, sorted.
func (a *Artifacts) List(ctx context.Context, k Key) (files []string, err error) {
	labels := map[string]string{"tool": a.tool, "app": k.App, "user": k.User}
	for sum, err := range a.store.List(ctx, ctxdir.ListOptions{Kind: artifactKind, Labels: labels}) {
		if err != nil {
			return nil, err
		}
		names, err := namesOf(sum.ExternalID)
		if err != nil {
			return nil, err
		}
		if len(names) == 5 && (names[3] == k.ID || names[3] == "") {
			files = append(files, names[4])
		}
	}
	slices.Sort(files)
	return files, nil
}

// Delete moves a version of a file, or the file if number is 0, to the trash. It does nothing if there is none.
func (a *Artifacts) Delete(ctx context.Context, k Key, file string, number int64) error {
	numbers, err := a.Versions(ctx, k, file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && number != 0 && !slices.Contains(numbers, number) {
		return nil
	}
	if err != nil {
		return err
	}
	if number == 0 || len(numbers) == 1 {
		_, err := a.store.Remove(ctx, a.contextID(k, file))
		if errors.Is(err, ctxdir.ErrNotExist) {
			return nil
		}
		return err
	}
	return a.use(ctx, k, file, func(b *ctxdir.Branch, _ int64) error {
		m, err := b.Range(ctx, number-1, number)
		if err != nil {
			return err
		}
		return b.Replace(ctx, m[0].ID, ctxdir.Draft{Type: deletedType, Body: json.RawMessage(`{}`)}, ctxdir.WriteOptions{Shared: true})
	})
}
