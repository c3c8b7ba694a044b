package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server/internal/pgtest"
)

func TestMain(m *testing.M) {
	status := pgtest.Run(m)
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(status)
}

// built is the folder that programs made.
var built string

// programs is a folder with the binaries, which are built once for all tests.
var programs = sync.OnceValues(func() (dir string, err error) {
	dir, err = os.MkdirTemp("", "ctxserver-test-")
	built = dir
	for from, command := range map[string]string{"../..": "ctxserver", "../../..": "ctxtool"} {
		if err == nil {
			build := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Join(dir, command), "./cmd/"+command)
			build.Dir = from
			var out []byte
			if out, err = build.CombinedOutput(); err != nil {
				err = fmt.Errorf("build %s: %w\n%s", command, err, out)
			}
		}
	}
	return dir, err
})

// guide is a folder with the binaries, and a port that is free.
type guide struct{ dir, text, address string }

func newGuide(t *testing.T) guide {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	dir := t.TempDir()
	bin, err := programs()
	if err == nil {
		err = os.Symlink(bin, filepath.Join(dir, "bin"))
	}
	if err != nil {
		t.Fatal(err)
	}
	tutorial, err := os.ReadFile("../../../docs/tutorials/team.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tutorial, found := bytes.Cut(tutorial, []byte("\n## Two users\n")) // the binaries are there
	text, err := os.ReadFile("../../../docs/SERVER.md")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	// Another program may have the port.
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return guide{dir, string(tutorial) + string(text), address}
}

// run runs the blocks of the guide in a language, and returns what each printed. More is appended.
func (g guide) run(t *testing.T, language string, count int, more string) []string {
	t.Helper()
	script := "set -euo pipefail\ntrap 'kill %1' EXIT\n"
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(g.text, -1)
	if len(blocks) != count {
		t.Fatalf("%d blocks", len(blocks))
	}
	for i, b := range append(blocks, []string{"", more}) {
		script += "echo == " + string(rune('a'+i)) + "\n" + strings.ReplaceAll(b[1], "127.0.0.1:7434", g.address)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = g.dir
	shell.Env = append(os.Environ(), "PATH="+filepath.Join(g.dir, "bin")+":"+os.Getenv("PATH"), "HOME="+g.dir,
		"CTXSERVER_LISTEN="+g.address, "CTXDIR_NO_GC=1")
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(string(out), "== ")
}

// TestGuide runs the commands of docs/tutorials/team.md and docs/SERVER.md, as they stand there, and looks at what they print.
func TestGuide(t *testing.T) {
	out := newGuide(t).run(t, "sh", 7, "")
	parts := out[:len(out)-1]
	if len(parts) != 8 || !strings.Contains(parts[3], "Which berths") || !strings.Contains(parts[3], "Berths 3 and 4.") {
		t.Errorf("the laptop does not show both messages:\n%s", out)
	}
	if !strings.HasSuffix(parts[4], "404\n") || strings.Contains(parts[4], "Harbour") {
		t.Errorf("bob sees something:\n%s", parts[4])
	}
	if strings.Count(parts[5], `"title":"Cranes"`) != 2 || strings.Contains(parts[5], "Harbour plan") {
		t.Errorf("a token of one project sees:\n%s", parts[5])
	}
	if strings.Count(parts[6], `"title":"Cranes"`) != 1 ||
		strings.Contains(parts[6], "Harbour plan") || !strings.Contains(parts[6], "  metadata\n") {
		t.Errorf("bob reads what is shared:\n%s", parts[6])
	}
	if !strings.Contains(parts[7], `"name":"cleo"`) || !strings.Contains(parts[7], `"token":"`) {
		t.Errorf("an invitation:\n%s", parts[7])
	}
}

// TestGuideOnDatabase runs the commands for PostgreSQL, and then rotates the key while the server runs.
func TestGuideOnDatabase(t *testing.T) {
	_, url := pgtest.Empty(t)
	g := newGuide(t)
	const address = "CTXSERVER_DB=postgres://ctxserver@/ctxserver"
	if strings.Count(g.text, address) != 1 {
		t.Fatal("the guide has another address")
	}
	g.text = strings.ReplaceAll(g.text, address, "CTXSERVER_DB='"+url+"'")
	const more = `
api() { curl -fs -H "Authorization: Bearer $ADA" "$@"; }
api -H 'Content-Type: application/json' -d '{"title":"Harbour plan"}' http://127.0.0.1:7434/v1/contexts >made
id=$(cat made | grep -o '"id":"[^"]*"' | cut -d'"' -f4)
ctxserver key rotate
ctxserver user add bob
BOB=$(ctxserver user token bob)
curl -fs -H "Authorization: Bearer $BOB" http://127.0.0.1:7434/v1/contexts
ctxserver key drop
kill %1
wait %1
ctxserver &
until curl -fs http://127.0.0.1:7434/readyz; do sleep 0.1; done
api http://127.0.0.1:7434/v1/contexts/$id
curl -fs -H "Authorization: Bearer $BOB" http://127.0.0.1:7434/v1/contexts
kill %1
wait %1
trap - EXIT
ctxserver key new third.key
if CTXSERVER_KEY=third.key ctxserver; then exit 1; fi
if CTXSERVER_KEY=none.key ctxserver; then exit 1; fi
ctxserver config | grep db
`
	out := strings.Join(g.run(t, "bash", 1, more), "== ")
	for _, want := range []string{
		"Made a key. Keep a copy of master.key", "Encrypted the keys in the database with a new key. Copy master.key again",
		"Deleted the old keys from master.key", `"title":"Harbour plan"`,
		"the master key does not fit this database",
		"third.key is another key; start with the one that was used before, nothing has been changed",
		"no such file or directory\nIf the database is new, make a key with: ctxserver key new none.key",
		"(secret)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "user=postgres") {
		t.Errorf("a secret is shown:\n%s", out)
	}
}

// TestBlobs keeps large content in a folder of objects, and starts servers that have another one, or none.
func TestBlobs(t *testing.T) {
	_, url := pgtest.Empty(t)
	g := newGuide(t)
	g.text = ""
	const more = `
mkdir objects other
ctxserver key new master.key
export CTXSERVER_KEY=master.key CTXSERVER_BLOBS="file://$PWD/objects"
ctxserver user add ada
ADA=$(ctxserver user token ada)
serve() { ctxserver & until curl -fs http://127.0.0.1:7434/readyz; do sleep 0.1; done; }
api() { curl -fs -H "Authorization: Bearer $ADA" -H 'Content-Type: application/json' "$@"; }
serve
api -d '{"title":"Harbour plan"}' http://127.0.0.1:7434/v1/contexts >made
id=$(grep -o '"id":"[^"]*"' made | cut -d'"' -f4)
head -c 100000 /dev/urandom | base64 -w0 >text
echo "{\"role\":\"user\",\"content\":\"$(cat text)\"}" >message
api -o /dev/null -d @message http://127.0.0.1:7434/v1/contexts/$id/branches/main/messages
kill %1
wait %1
find objects -type f -size +90k | wc -l
serve
api http://127.0.0.1:7434/v1/contexts/$id/branches/main/messages | grep -qFf text && echo read back
ctxserver blobs sweep
kill %1
wait %1
trap - EXIT
if CTXSERVER_BLOBS="file://$PWD/other" ctxserver; then exit 1; fi
if CTXSERVER_BLOBS="file://$PWD/none" ctxserver; then exit 1; fi
mv objects/* other
if ctxserver; then exit 1; fi
mv other/* objects
unset CTXSERVER_BLOBS
if ctxserver; then exit 1; fi
if ctxserver key rotate; then exit 1; fi
if CTXSERVER_DB= CTXSERVER_KEY= ctxserver --dir data --blobs file:///x; then exit 1; fi
CTXSERVER_BLOBS=s3://bucket CTXSERVER_BLOBS_KEY_ID=id CTXSERVER_BLOBS_SECRET_FILE=master.key ctxserver config | grep blobs
`
	out := g.runMore(t, url, more)
	for _, want := range []string{
		"1\n", "read back\n", "Looked at 1 objects; nothing names 0 of them, and 0 were removed\n",
		"the objects of this database are not in this bucket: set --blobs to the address that was used before, or copy all objects to file://" +
			g.dir + "/other first; nothing has been changed\n",
		"ctxserver: --blobs: the folder for objects: open " + g.dir + "/none: no such file or directory\n",
		"content of this database is in an object store: set --blobs to the address that was used before; nothing has been changed\n",
		"ctxserver: --blobs is for a database: --db; a folder keeps all content itself\n",
		"blobs               s3://bucket",
		"blobs-grace         168h0m0s", "blobs-secret        (secret)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "nothing has been changed"); n != 4 {
		t.Errorf("%d servers refused to start:\n%s", n, out)
	}
}

// runMore runs commands on a database.
func (g guide) runMore(t *testing.T, url, more string) string {
	t.Helper()
	return strings.Join(g.run(t, "none", 0, "export CTXSERVER_DB='"+url+"'\n"+more), "== ")
}
