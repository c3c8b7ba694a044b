package adk_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ctxdir/ctxdir/contrib/adk"
	"google.golang.org/adk/artifact"
	"google.golang.org/genai"
)

func save(t *testing.T, s artifact.Service, sessionID, file string, part *genai.Part) int64 {
	t.Helper()
	saved, err := s.Save(t.Context(), &artifact.SaveRequest{AppName: "app", UserID: "ada", SessionID: sessionID, FileName: file, Part: part})
	if err != nil {
		t.Fatal(err)
	}
	return saved.Version
}

func load(s artifact.Service, t *testing.T, sessionID, file string, version int64) (*genai.Part, error) {
	r, err := s.Load(t.Context(), &artifact.LoadRequest{
		AppName: "app", UserID: "ada", SessionID: sessionID, FileName: file, Version: version,
	})
	if err != nil {
		return nil, err
	}
	return r.Part, nil
}

// TestArtifacts does what ADK's suite for artifacts does, which other modules cannot import.
func TestArtifacts(t *testing.T) {
	dir := t.TempDir()
	s := adk.NewArtifactService(newStore(t, dir))
	large := genai.NewPartFromBytes(bytes.Repeat([]byte{0, 1, 2, 253}, 100_000), "image/png")
	for i, part := range []*genai.Part{genai.NewPartFromText("one"), large, genai.NewPartFromBytes([]byte("three"), "text/plain")} {
		if v := save(t, s, "s1", "file", part); v != int64(i+1) {
			t.Errorf("version %d, not %d", v, i+1)
		}
	}
	save(t, s, "s1", "FILE", genai.NewPartFromText("capital"))
	save(t, s, "s1", "user:notes", genai.NewPartFromText("of the user"))
	save(t, s, "s2", "other", genai.NewPartFromText("of another session"))

	for version, want := range map[int64]string{0: "text/plain", 1: "text/plain", 2: "image/png", 3: "text/plain"} {
		r, err := s.GetArtifactVersion(t.Context(), &artifact.GetArtifactVersionRequest{
			AppName: "app", UserID: "ada", SessionID: "s1", FileName: "file", Version: version,
		})
		if err != nil || r.ArtifactVersion.MimeType != want || version != 0 && r.ArtifactVersion.Version != version {
			t.Errorf("version %d: %+v, %v", version, r, err)
		}
	}
	if got, err := load(s, t, "s1", "file", 2); err != nil || !reflect.DeepEqual(got, large) {
		t.Errorf("the image came back as %.80v, %v", got, err)
	}
	if got, err := load(s, t, "s2", "user:notes", 0); err != nil || got.Text != "of the user" {
		t.Errorf("another session of the user reads %v, %v", got, err)
	}
	list, err := s.List(t.Context(), &artifact.ListRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if want := []string{"FILE", "file", "user:notes"}; err != nil || !reflect.DeepEqual(list.FileNames, want) {
		t.Errorf("files %v, %v", list.FileNames, err)
	}
	if blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*")); err != nil || len(blobs) != 1 {
		t.Errorf("the image is not in a blob: %v, %v", blobs, err)
	}
}

// TestArtifactDelete: a deleted version leaves the others, and its number is not used again.
func TestArtifactDelete(t *testing.T) {
	s := adk.NewArtifactService(newStore(t, t.TempDir()))
	remove := func(version int64) {
		t.Helper()
		r := &artifact.DeleteRequest{AppName: "app", UserID: "ada", SessionID: "s1", FileName: "file", Version: version}
		if err := s.Delete(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	remove(0) // there is none
	for _, text := range []string{"one", "two", "three"} {
		save(t, s, "s1", "file", genai.NewPartFromText(text))
	}
	remove(3)
	remove(9)
	if got, err := load(s, t, "s1", "file", 0); err != nil || got.Text != "two" {
		t.Errorf("the newest is %v, %v", got, err)
	}
	if _, err := load(s, t, "s1", "file", 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a deleted version: %v", err)
	}
	if v := save(t, s, "s1", "file", genai.NewPartFromText("four")); v != 4 {
		t.Errorf("the next version is %d", v)
	}
	for _, version := range []int64{1, 2, 4} {
		remove(version)
	}
	versions := &artifact.VersionsRequest{AppName: "app", UserID: "ada", SessionID: "s1", FileName: "file"}
	if _, err := s.Versions(t.Context(), versions); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("versions of a deleted file: %v", err)
	}
	list, err := s.List(t.Context(), &artifact.ListRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if err != nil || len(list.FileNames) != 0 {
		t.Errorf("files %v, %v", list.FileNames, err)
	}
}
