package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/workspace"
)

func TestFind(t *testing.T) {
	project := t.TempDir()
	below := filepath.Join(project, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(below, workspace.Folder), nil, 0o600); err != nil { // a file is no workspace
		t.Fatal(err)
	}
	s, err := workspace.Init(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if path, err := workspace.Find(below); err != nil || path != filepath.Join(project, workspace.Folder) {
		t.Errorf("%q, %v", path, err)
	}
}

func TestInit(t *testing.T) {
	project := t.TempDir()
	s, err := workspace.Init(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := s.Settings()
	if err != nil {
		t.Fatal(err)
	}
	want := ctxdir.Settings{TextThreshold: 16 << 10, CacheSize: 100e6, MaxTokens: 8000, StorageMode: "local", Extraction: "local"}
	if !reflect.DeepEqual(settings, want) {
		t.Errorf("%+v", settings)
	}
	dir := s.Info().Path
	ignored, err := os.ReadFile(filepath.Join(dir, ".gitignore"))
	if err != nil || !strings.HasSuffix(string(ignored), "\n*\n") {
		t.Errorf("%q, %v", ignored, err)
	}
	for finding, err := range s.Check(t.Context(), ctxdir.CheckOptions{All: true}) {
		t.Errorf("%+v, %v", finding, err)
	}
	// A second Init changes nothing that a person wrote.
	if err := s.Configure(t.Context(), func(s *ctxdir.Settings) error { s.MaxTokens = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".gitignore", workspace.Instructions} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = workspace.Init(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if settings, err := s.Settings(); err != nil || settings.MaxTokens != 1 {
		t.Errorf("%+v, %v", settings, err)
	}
	if ignored, err = os.ReadFile(filepath.Join(dir, ".gitignore")); err != nil || string(ignored) != "mine" {
		t.Errorf("%q, %v", ignored, err)
	}
	if text, err := workspace.ReadInstructions(s); err != nil || text != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestReadInstructions(t *testing.T) {
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path := filepath.Join(s.Info().Path, workspace.Instructions)
	if text, err := workspace.ReadInstructions(s); err != nil || text != "" {
		t.Errorf("none: %q, %v", text, err)
	}
	tests := []struct {
		name, content, want string
		fails               bool
	}{
		{"text", "\ufeff Be brief.\n\n", "Be brief.", false},
		{"empty", "", "", false},
		{"largest", strings.Repeat("x", workspace.MaxInstructions), strings.Repeat("x", workspace.MaxInstructions), false},
		{"too large", strings.Repeat("x", workspace.MaxInstructions+1), "", true},
		{"not text", "a\xff", "", true},
	}
	for _, test := range tests {
		if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := workspace.ReadInstructions(s); text != test.want || (err != nil) != test.fails {
			t.Errorf("%s: %.20q, %v", test.name, text, err)
		}
	}
	// No link leads out of the workspace.
	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, path); err != nil {
		t.Skip("this system makes no links")
	}
	if text, err := workspace.ReadInstructions(s); err == nil || text != "" {
		t.Errorf("through a link: %q, %v", text, err)
	}
}
