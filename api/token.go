package api

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// minToken is the length of the shortest token that a file may have, in bytes.
const minToken = 32

// Token returns the token in a file. If the file does not exist, Token makes a new one and writes it, readable by its
// owner only. It fails if others may read or change the file, or if it holds no token.
func Token(path string) (string, error) {
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	t, err := os.CreateTemp(filepath.Dir(path), ".token-*") // readable by its owner only
	if err != nil {
		return "", err
	}
	defer os.Remove(t.Name()) //nolint:errcheck // the other name stays
	_, err = t.WriteString(base64.RawURLEncoding.EncodeToString(b) + "\n")
	if err == nil {
		err = t.Sync()
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return "", err
	}
	// A link does not replace: of several processes that begin at once, all use the token of the first one.
	if err := os.Link(t.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return readToken(path)
}

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if err := private(info); err != nil {
		return "", fmt.Errorf("token file %s: %w", path, err)
	}
	if info.Size() > 4096 {
		return "", fmt.Errorf("token file %s: the file is too large", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("token file %s: %w", path, err)
	}
	return token, nil
}

// checkToken rejects a text that is not a token: it must fit in a header, in the fragment of a URL and in the name of a
// subprotocol.
func checkToken(token string) error {
	if len(token) < minToken {
		return fmt.Errorf("the token has %d characters; it needs at least %d", len(token), minToken)
	}
	for _, c := range []byte(token) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return errors.New("the token contains a character other than letters, digits, - and _")
		}
	}
	return nil
}
