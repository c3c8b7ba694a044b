package keyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tink-crypto/tink-go/v2/tink"
)

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	if err := New(path); err != nil {
		t.Fatal(err)
	}
	if err := New(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a key: %v", err)
	}
	if i, err := os.Stat(path); err != nil || i.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the key: %v %v", i.Mode(), err)
	}
	first, err := Master(path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := first.Encrypt([]byte("text"), nil)
	if err != nil {
		t.Fatal(err)
	}
	opens := func(what string, want bool, b []byte, key func(string) (tink.AEAD, error)) {
		t.Helper()
		k, err := key(path)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := k.Decrypt(b, nil); (err == nil && string(text) == "text") != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := Rotate(path); err != nil {
		t.Fatal(err)
	}
	opens("old by all", true, old, Master)
	opens("old by the newest", false, old, Newest)
	second, err := Master(path)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := second.Encrypt([]byte("text"), nil)
	if err != nil {
		t.Fatal(err)
	}
	opens("new by the newest", true, fresh, Newest)
	if _, err := first.Decrypt(fresh, nil); err == nil {
		t.Error("the old key opens what is new")
	}
	if err := DropOld(path); err != nil {
		t.Fatal(err)
	}
	opens("old by all", false, old, Master)
	opens("new by all", true, fresh, Master)
}

func TestNoKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	if _, err := Master(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for _, text := range []string{"", "secret", "{}", `{"primaryKeyId":1,"key":[]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Master(path); err == nil {
			t.Errorf("%q is a key", text)
		}
		if err := Rotate(path); err == nil {
			t.Errorf("%q was rotated", text)
		}
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("%q was overwritten", text)
		}
	}
}
