// Package keyfile keeps the master key of a server in a file: a keyset of Tink, in JSON. The file has one key, and after a
// rotation older ones too, as long as something may be encrypted with them. Whoever has it can read everything; without it,
// nobody can.
package keyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// maxBytes bounds the file.
const maxBytes = 1 << 20

// New makes a file with a new key. It fails with an error that wraps fs.ErrExist if there is a file.
//
// Crash order: the file is durable under its name, or there is none that another New would not replace, before it returns.
func New(path string) error {
	m := keyset.NewManager()
	if err := add(m); err != nil {
		return err
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	return in(path, func(dir vfs.FS, name string) error {
		tmp := vfs.TemporaryName(name)
		err := vfs.WriteNew(dir, tmp, b)
		if err == nil {
			err = dir.RenameNew(tmp, name)
		}
		if err != nil {
			return errors.Join(err, ignoreMissing(dir.Remove(tmp)))
		}
		return dir.SyncDir(".")
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Master returns the key. It encrypts with the newest one, and decrypts with all.
func Master(path string) (tink.AEAD, error) {
	m, err := read(path)
	if err != nil {
		return nil, err
	}
	return primitive(path, m)
}

// Newest returns the newest key alone.
func Newest(path string) (tink.AEAD, error) {
	m, err := read(path)
	if err == nil {
		err = onlyNewest(m)
	}
	if err != nil {
		return nil, err
	}
	return primitive(path, m)
}

// Rotate adds a new key, which encrypts from now on. Older ones still decrypt.
func Rotate(path string) error { return change(path, add) }

// DropOld keeps the newest key alone. Whatever only older ones open is lost.
func DropOld(path string) error { return change(path, onlyNewest) }

// change replaces the file. The file is durable when it returns: nothing is ever encrypted with a key that a crash could take back.
func change(path string, f func(m *keyset.Manager) error) error {
	m, err := read(path)
	if err == nil {
		err = f(m)
	}
	var b []byte
	if err == nil {
		b, err = encode(m)
	}
	if err != nil {
		return err
	}
	return in(path, func(dir vfs.FS, name string) error {
		if err := dir.Replace(name, b); err != nil {
			return err
		}
		return dir.SyncDir(".")
	})
}

// in runs f in the folder of a file.
func in(path string, f func(dir vfs.FS, name string) error) error {
	dir, err := vfs.OS(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(f(dir, filepath.Base(path)), dir.Close())
}

func add(m *keyset.Manager) error {
	id, err := m.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return err
	}
	return m.SetPrimary(id)
}

func onlyNewest(m *keyset.Manager) error {
	h, err := m.Handle()
	if err != nil {
		return err
	}
	newest, err := h.Primary()
	if err != nil {
		return err
	}
	for i := range h.Len() {
		e, err := h.Entry(i)
		if err == nil && e.KeyID() != newest.KeyID() {
			err = m.Delete(e.KeyID())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func encode(m *keyset.Manager) ([]byte, error) {
	h, err := m.Handle()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = insecurecleartextkeyset.Write(h, keyset.NewJSONWriter(&b))
	return append(b.Bytes(), '\n'), err
}

func read(path string) (*keyset.Manager, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(io.LimitReader(f, maxBytes)))
	if err != nil {
		return nil, fmt.Errorf("%s is not a key file: %w", path, err)
	}
	return keyset.NewManagerFromHandle(h), nil
}

func primitive(path string, m *keyset.Manager) (tink.AEAD, error) {
	h, err := m.Handle()
	if err != nil {
		return nil, err
	}
	key, err := aead.New(h)
	if err != nil {
		return nil, fmt.Errorf("%s is not a key file: %w", path, err)
	}
	return key, nil
}
