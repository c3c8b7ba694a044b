package pgfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/daead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Keys has the master key, which wraps the keys of the users. Each user has one for content (AES-256-GCM) and one for
// names (AES-SIV), in the table keys. Without its row nobody can read the data of a user, backups included.
type Keys struct {
	master Master

	mu      sync.Mutex
	checked bool
}

// Master returns the master key as it is now. It is asked whenever keys of a user are made or read, so that a rotation needs
// no restart. It may be a service: an error of it that does not wrap [ErrMaster] says that it did not encrypt this.
type Master func() (tink.AEAD, error)

// NewKeys returns keys under a master key.
func NewKeys(master Master) *Keys { return &Keys{master: master} }

// Check fails with [ErrKey] unless the master key is that of the database: it opens the keys of the user 0. The first call in
// a database makes them; until then there is nothing else in it. A nil k fits a database without keys.
func (k *Keys) Check(ctx context.Context, pool *pgxpool.Pool) error {
	if k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.checked {
			return nil
		}
	}
	var content, names []byte
	err := pool.QueryRow(ctx, selectKeys, uuid.Nil).Scan(&content, &names)
	if k == nil && err == nil {
		return fmt.Errorf("%w: its content is encrypted", ErrKey)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	if k == nil || err != nil {
		return err
	}
	if _, err = k.sealer(ctx, pool, uuid.Nil, content, names); err != nil {
		return err
	}
	k.checked = true
	return nil
}

const (
	selectKeys = `SELECT content, names FROM keys WHERE user_id = $1`
	insertKeys = `INSERT INTO keys VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
)

// sealer unwraps the keys of a user, or makes them if there are none.
//
// Crash order: the keys are committed before anything that they encrypt is written.
func (k *Keys) sealer(ctx context.Context, pool *pgxpool.Pool, user uuid.UUID, content, names []byte) (Sealer, error) {
	if content == nil {
		var err error
		if content, err = k.wrap(aead.AES256GCMKeyTemplate(), user); err != nil {
			return nil, err
		}
		if names, err = k.wrap(daead.AESSIVKeyTemplate(), user); err != nil {
			return nil, err
		}
		if _, err = pool.Exec(ctx, insertKeys, user, content, names); err != nil {
			return nil, err
		}
		if err = pool.QueryRow(ctx, selectKeys, user).Scan(&content, &names); err != nil {
			return nil, err
		}
	}
	c, err := k.unwrap(content, user)
	if err != nil {
		return nil, err
	}
	n, err := k.unwrap(names, user)
	if err != nil {
		return nil, err
	}
	s := &sealer{user: user}
	if s.content, err = aead.New(c); err != nil {
		return nil, err
	}
	s.names, err = daead.New(n)
	return s, err
}

func (k *Keys) wrap(template *tinkpb.KeyTemplate, user uuid.UUID) ([]byte, error) {
	h, err := keyset.NewHandle(template)
	if err != nil {
		return nil, err
	}
	return k.seal(h, user)
}

func (k *Keys) seal(h *keyset.Handle, user uuid.UUID) ([]byte, error) {
	master, err := k.master()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	asked := &asked{AEAD: master}
	err = h.WriteWithAssociatedData(keyset.NewBinaryWriter(&b), asked, user[:])
	if asked.err != nil {
		err = asked.err
	}
	return b.Bytes(), err
}

func (k *Keys) unwrap(b []byte, user uuid.UUID) (*keyset.Handle, error) {
	master, err := k.master()
	if err != nil {
		return nil, err
	}
	asked := &asked{AEAD: master}
	h, err := keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(b)), asked, user[:])
	if errors.Is(asked.err, ErrMaster) {
		return nil, asked.err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return h, nil
}

// asked remembers why the master key failed: keysets say it as text only.
type asked struct {
	tink.AEAD
	err error
}

func (a *asked) Encrypt(plain, ad []byte) (b []byte, err error) {
	b, a.err = a.AEAD.Encrypt(plain, ad)
	return b, a.err
}

func (a *asked) Decrypt(sealed, ad []byte) (b []byte, err error) {
	b, a.err = a.AEAD.Decrypt(sealed, ad)
	return b, a.err
}

// sealer is the Sealer of a user.
type sealer struct {
	user    uuid.UUID
	content tink.AEAD
	names   tink.DeterministicAEAD
}

func (s *sealer) Seal(b, ad []byte) ([]byte, error) { return s.content.Encrypt(b, ad) }
func (s *sealer) Open(b, ad []byte) ([]byte, error) { return s.content.Decrypt(b, ad) }

func (s *sealer) folder(parent int64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte("name"), s.user[:]...), uint64(parent))
}

func (s *sealer) SealName(name string, parent int64) ([]byte, error) {
	return s.names.EncryptDeterministically([]byte(name), s.folder(parent))
}

func (s *sealer) OpenName(b []byte, parent int64) (string, error) {
	name, err := s.names.DecryptDeterministically(b, s.folder(parent))
	return string(name), err
}
