package writer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
)

// most bounds the contexts that a writer has of each kind, so that a store does not grow with the time.
const most = 8

func (w *worker) create() error {
	if len(w.own) >= most {
		return w.delete()
	}
	id := w.uuid()
	return w.step(Step{Op: Create, Context: id}, func(*Step) error {
		c, err := w.store.Create(w.ctx, ctxdir.Metadata{ID: id, Title: w.Name})
		if err == nil {
			w.own = append(w.own, c)
		}
		return err
	})
}

func (w *worker) delete() error {
	if len(w.own) == 0 {
		return nil
	}
	at := w.random.IntN(len(w.own))
	c := w.own[at]
	return w.step(Step{Op: Delete, Context: c.ID()}, func(*Step) error {
		if _, err := w.store.Remove(w.ctx, c.ID()); err != nil {
			return err
		}
		w.own = slices.Delete(w.own, at, at+1)
		return c.Close()
	})
}

// forget deletes the oldest of what was imported and migrated, when there is enough of it.
func (w *worker) forget() error {
	if len(w.taken) < most {
		return nil
	}
	id := w.taken[0]
	w.taken = w.taken[1:]
	return w.step(Step{Op: Delete, Context: id}, func(*Step) error {
		_, err := w.store.Remove(w.ctx, id)
		return err
	})
}

// importFile imports a history of its own.
func (w *worker) importFile() error {
	if err := w.forget(); err != nil {
		return err
	}
	w.number++
	path := filepath.Join(w.Scratch, fmt.Sprintf("%s-%d.jsonl", w.Name, w.number))
	drafts, messages := w.drafts(1+w.random.IntN(20), said{Role: "user", By: w.Name})
	var lines bytes.Buffer
	for i, d := range drafts {
		messages[i].ID = uuid.Nil
		lines.Write(append(d.Body, '\n'))
	}
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		return err
	}
	return w.step(Step{Op: Import, Path: path, Messages: messages}, func(s *Step) error {
		for r, err := range importer.Import(w.ctx, w.store.Importer(), path, importer.Options{Format: importer.JSONL}) {
			if err != nil {
				return err
			}
			s.Context = r.Context
		}
		w.taken = append(w.taken, s.Context)
		return os.Remove(path)
	})
}

// migrate migrates a legacy file that lies beside the store.
func (w *worker) migrate() error {
	if err := w.forget(); err != nil {
		return err
	}
	id := w.uuid()
	// The role as the old program spells it: it keeps such bodies as they are.
	drafts, messages := w.drafts(1+w.random.IntN(12), said{Role: "User", By: w.Name})
	file, err := w.legacyFile(id, drafts)
	if err != nil {
		return err
	}
	path := filepath.Join(w.Legacy, id.String()+".json")
	if err := put(path, file); err != nil {
		return err
	}
	return w.step(Step{Op: Migrate, Context: id, Path: path, Messages: messages}, func(*Step) error {
		_, err := w.store.Migrate(w.ctx, path, ctxdir.MigrateOptions{})
		if err == nil {
			w.taken = append(w.taken, id)
		}
		return err
	})
}

// legacyFile has a store of its own write a legacy context.
func (w *worker) legacyFile(id uuid.UUID, drafts []ctxdir.Draft) (file []byte, err error) {
	dir, err := os.MkdirTemp(w.Scratch, "legacy-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := ctxdir.Init(filepath.Join(dir, "store"), ctxdir.Options{RelaxedDurability: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c, err := s.Create(w.ctx, ctxdir.Metadata{ID: id, Title: "legacy"})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Active().AppendBatch(w.ctx, drafts); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "file.json")
	if _, err := s.Rollback(w.ctx, id, ctxdir.RollbackOptions{To: path}); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// put writes a file durably: what is migrated has been there for long.
func put(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
