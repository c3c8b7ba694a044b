// Package release tests the installer of a release, install.sh.
package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// install runs install.sh against a folder that has the files of a release, served on this machine.
func install(t *testing.T, folder, command string) (bin, said string, err error) {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	prefix := filepath.Join(t.TempDir(), "with a space")
	cmd := exec.CommandContext(t.Context(), "sh", "../install.sh", command)
	cmd.Env = append(os.Environ(), "CTXDIR_URL="+server.URL, "PREFIX="+prefix, "no_proxy=127.0.0.1")
	out, err := cmd.CombinedOutput()
	return filepath.Join(prefix, "bin", command), string(out), err
}

// made returns a folder with an archive whose ctxtool is a script, and with the checksums of the archive.
func made(t *testing.T, spoil func(folder, archive string)) string {
	t.Helper()
	folder, name := t.TempDir(), "ctxtool_9.8.7_"+runtime.GOOS+"_"+runtime.GOARCH
	script := "#!/bin/sh\necho ctxtool v9.8.7\n"
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name + "/ctxtool", Mode: 0o755, Size: int64(len(script))}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Write([]byte(script))
	if err := firstOf(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, name+".tar.gz")
	sums := fmt.Sprintf("%064x  other.deb\n%x  %s.tar.gz\n", 1, sha256.Sum256(archive.Bytes()), name)
	if err := firstOf(os.WriteFile(path, archive.Bytes(), 0o600),
		os.WriteFile(filepath.Join(folder, "checksums.txt"), []byte(sums), 0o600)); err != nil {
		t.Fatal(err)
	}
	if spoil != nil {
		spoil(folder, path)
	}
	return folder
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestInstall(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("install.sh is for Linux and macOS")
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		command string
		spoil   func(folder, archive string)
		fails   string
	}{
		"a release": {command: "ctxtool"},
		"another archive than that of the checksum": {command: "ctxtool", fails: "another checksum", spoil: func(_, archive string) {
			f, err := os.OpenFile(archive, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteString("x")
			if err := firstOf(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}},
		"an archive that is missing": {command: "ctxtool", fails: "cannot download", spoil: func(_, archive string) {
			if err := os.Remove(archive); err != nil {
				t.Fatal(err)
			}
		}},
		"no checksums": {command: "ctxtool", fails: "cannot download", spoil: func(folder, _ string) {
			if err := os.Remove(filepath.Join(folder, "checksums.txt")); err != nil {
				t.Fatal(err)
			}
		}},
		"a name that leads elsewhere": {command: "ctxtool", fails: "no archive of ctxtool", spoil: func(folder, archive string) {
			write(filepath.Join(folder, "checksums.txt"), fmt.Sprintf("%064x  ../%s\n", 1, filepath.Base(archive)))
		}},
		"a command that the release lacks": {command: "ctxserver", fails: "no archive of ctxserver"},
		"an unknown command":               {command: "rm", fails: "there is no command rm"},
	} {
		t.Run(name, func(t *testing.T) {
			bin, said, err := install(t, made(t, c.spoil), c.command)
			if c.fails != "" {
				if _, statErr := os.Stat(bin); err == nil || !strings.Contains(said, c.fails) || statErr == nil {
					t.Errorf("%v, file: %v: %s", err, statErr, said)
				}
				return
			}
			if err != nil || !strings.Contains(said, "ctxtool v9.8.7") || !strings.Contains(said, "not in your PATH") {
				t.Fatalf("%v: %s", err, said)
			}
			if out, err := exec.CommandContext(t.Context(), bin).Output(); err != nil || string(out) != "ctxtool v9.8.7\n" {
				t.Errorf("it runs: %q, %v", out, err)
			}
		})
	}
}

// TestInstallRelease installs both commands from the files of a release that was made: release/dry-run.sh calls it.
func TestInstallRelease(t *testing.T) {
	folder := os.Getenv("CTXDIR_DIST")
	if folder == "" {
		t.Skip("CTXDIR_DIST names no folder with the files of a release")
	}
	for _, command := range []string{"ctxtool", "ctxserver"} {
		_, said, err := install(t, folder, command)
		if t.Log(said); err != nil {
			t.Error(err)
		}
	}
}
