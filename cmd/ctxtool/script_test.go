package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/rogpeppe/go-internal/testscript"
)

// programs are what tests run as programs.
var programs = map[string]func(){"ctxtool": main}

func TestMain(m *testing.M) { testscript.Main(m, programs) }

// TestScripts runs the command as its users do. A script's commands beside those of testscript:
//
//	ctx …                     is "exec ctxtool …" in the process of the test, which takes a twentieth of the time
//	input FILE                is stdin for ctx
//	exits STATUS ctx …        runs it and checks the exit status; 0|3 is either; with "ctxtool", in a process of its own
//	var NAME [MEMBER]         sets $NAME to the last line of the last command's output, or a member of that object
//	end NAME VAR              sets $NAME to the end of $VAR: what people type of an id
//	damage KIND FILE          empties, tears, or removes the one file that a pattern matches
//	edit FILE OLD NEW         replaces a text in a file
//	repeat N TEXT FILE        writes a text so many times
//	sparse N FILE             makes a file of so many zero bytes that takes no room
//	lock FILE                 holds a lock until the script ends
//	sqlite FILE SCRIPT        makes a database
//
// $SAMPLES is the folder with a small history of each tool.
func TestScripts(t *testing.T) {
	samples, err := filepath.Abs("../../importer/testdata")
	if err != nil {
		t.Fatal(err)
	}
	here := time.Local
	defer func() { time.Local = here }()
	time.Local = time.UTC // what $TZ is for ctx
	testscript.RunT(inTurn{t}, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Values[scriptStdin{}] = new(string)
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("TZ", "UTC")
			e.Setenv("SAMPLES", samples)
			e.Setenv("GORACE", "atexit_sleep_ms=0") // programs under the race detector idle a second otherwise
			e.Setenv("USERPROFILE", home)
			e.Setenv("CTXDIR_NO_GC", "1") // but for the scripts that are about it
			e.Setenv("CTXDIR_STORE", filepath.Join(e.WorkDir, "store"))
			if err := makeOld(e.WorkDir); err != nil {
				return err
			}
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"ctx":    scriptCtx,
			"input":  scriptInput,
			"exits":  scriptExits,
			"var":    scriptVar,
			"end":    scriptEnd,
			"damage": scriptDamage,
			"edit":   scriptEdit,
			"repeat": scriptRepeat,
			"sparse": scriptSparse,
			"lock":   scriptLock,
			"sqlite": scriptSQLite,
		},
	})
}

// makeOld gives files times from which a later write differs: an import does not take newer ones for unchanged.
func makeOld(root string) error {
	at := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return os.Chtimes(path, at, at)
	})
}

// inTurn runs scripts one after the other: ctx changes the folder and the environment of the process.
type inTurn struct{ *testing.T }

func (inTurn) Parallel()     {}
func (inTurn) Verbose() bool { return testing.Verbose() }

func (t inTurn) Run(name string, f func(t testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}

// scriptStdin is the key of what the next ctx reads.
type scriptStdin struct{}

func scriptInput(ts *testscript.TestScript, _ bool, args []string) {
	*ts.Value(scriptStdin{}).(*string) = ts.ReadFile(args[0])
}

func scriptCtx(ts *testscript.TestScript, neg bool, args []string) {
	if code := runHere(ts, args); (code != exitOK) != neg {
		ts.Fatalf("exit status %d", code)
	}
}

// runHere runs the command in this process as if it were one of the script's, and returns the exit status.
func runHere(ts *testscript.TestScript, args []string) int {
	before, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(before)) }()
	for _, name := range []string{"HOME", "USERPROFILE", "GIT_CEILING_DIRECTORIES", "GIT_CONFIG_NOSYSTEM"} { // what others than run read
		outside, was := os.LookupEnv(name)
		ts.Check(os.Setenv(name, ts.Getenv(name)))
		defer func() {
			if os.Unsetenv(name); was {
				os.Setenv(name, outside)
			}
		}()
	}
	stdin := ts.Value(scriptStdin{}).(*string)
	defer func() { *stdin = "" }()
	return run(context.Background(), args, strings.NewReader(*stdin), ts.Stdout(), ts.Stderr(), ts.Getenv)
}

func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	if args[1] == "ctx" {
		got = runHere(ts, args[2:])
	} else {
		var exit *exec.ExitError
		if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
			got = exit.ExitCode()
		} else {
			ts.Check(err)
		}
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("exit status %d, wanted %s", got, args[0])
	}
}

func scriptSQLite(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec(ts.ReadFile(args[1]))
	ts.Check(err)
	ts.Check(db.Close())
	ts.Check(makeOld(ts.MkAbs(args[0])))
}

func scriptVar(ts *testscript.TestScript, _ bool, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	last := lines[len(lines)-1]
	if len(args) > 1 {
		var record map[string]any
		ts.Check(json.Unmarshal([]byte(last), &record))
		last = record[args[1]].(string)
	}
	ts.Setenv(args[0], last)
}

func scriptEnd(ts *testscript.TestScript, _ bool, args []string) {
	v := ts.Getenv(args[1])
	ts.Setenv(args[0], v[len(v)-8:])
}

func scriptDamage(ts *testscript.TestScript, _ bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(found) == 0 {
		ts.Fatalf("nothing matches %s", args[1])
	}
	switch args[0] {
	case "empty":
		ts.Check(os.Truncate(found[0], 0))
	case "tear":
		ts.Check(os.Truncate(found[0], 20))
	case "flip":
		ts.Check(flip(found[0]))
	case "remove":
		for _, f := range found {
			ts.Check(os.RemoveAll(f))
		}
	default:
		ts.Fatalf("unknown damage %s", args[0])
	}
}

// flip flips a bit in the head of the first frame of a segment. Twice is as it was.
func flip(path string) error {
	b, err := os.ReadFile(path)
	if err == nil {
		b[16] ^= 1
		err = os.WriteFile(path, b, 0o600)
	}
	return err
}

func scriptEdit(ts *testscript.TestScript, _ bool, args []string) {
	before := ts.ReadFile(args[0])
	now := strings.Replace(before, args[1], args[2], 1)
	if now == before {
		ts.Fatalf("%s has no %q:\n%s", args[0], args[1], before)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(now), 0o600))
}

func scriptRepeat(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	text := strings.ReplaceAll(args[1], `\n`, "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Repeat(text, n)), 0o600))
}

func scriptSparse(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), nil, 0o600))
	ts.Check(os.Truncate(ts.MkAbs(args[1]), n))
}

func scriptLock(ts *testscript.TestScript, _ bool, args []string) {
	l := flock.New(ts.MkAbs(args[0]))
	ts.Check(l.Lock())
	ts.Defer(func() { l.Close() })
}

// inProcess runs the command with a store of its own.
type inProcess struct {
	store          string
	ssh            string // CTXDIR_SSH
	stdout, stderr strings.Builder
}

func newInProcess(t *testing.T) *inProcess {
	return &inProcess{store: filepath.Join(t.TempDir(), "store")}
}

func (p *inProcess) env(key string) string {
	switch key {
	case "CTXDIR_STORE":
		return p.store
	case "CTXDIR_NO_GC":
		return "1"
	case "CTXDIR_SSH":
		return p.ssh
	}
	return ""
}

// run returns the exit status; the output is in p.
func (p *inProcess) run(ctx context.Context, stdin string, args ...string) int {
	p.stdout.Reset()
	p.stderr.Reset()
	return run(ctx, args, strings.NewReader(stdin), &p.stdout, &p.stderr, p.env)
}

// lose empties the file of a message, which matches a pattern, and damages the segment that has it.
func (p *inProcess) lose(t *testing.T, id, view string) {
	t.Helper()
	for _, verb := range [][]string{{"archive", id, "--all"}, {"unarchive", id}} {
		if code := p.run(t.Context(), "", verb...); code != 0 {
			t.Fatal(p.stderr.String())
		}
	}
	for pattern, damage := range map[string]func(path string) error{
		"segments/*.zst": flip,
		view:             func(path string) error { return os.Truncate(path, 0) },
	} {
		found, err := filepath.Glob(filepath.Join(p.store, id, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v match %s: %v", found, pattern, err)
		}
		if err := damage(found[0]); err != nil {
			t.Fatal(err)
		}
	}
}

// new makes a context and returns its id.
func (p *inProcess) new(t *testing.T) string {
	t.Helper()
	if code := p.run(t.Context(), "", "new", "-q"); code != 0 {
		t.Fatal(code, p.stderr.String())
	}
	return strings.TrimSpace(p.stdout.String())
}
