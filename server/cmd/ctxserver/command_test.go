package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// do runs the command, and returns the exit status and what it prints.
func do(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	return code, out.String(), errs.String()
}

func TestUsersCommand(t *testing.T) {
	env := map[string]string{"CTXSERVER_DIR": t.TempDir()}
	for _, step := range []struct {
		args   string
		code   int
		stdout string // a pattern
		stderr string
	}{
		{"user add ada", 0, "^Added ada. Make a token with: ctxserver user token ada\n$", ""},
		{"user add ada", 1, "^$", `user "ada" already exists`},
		{"user add a/b", 2, "^$", "expected 1 to 64 letters"},
		{"user add", 2, "^$", "usage: ctxserver user add NAME"},
		{"user ls", 0, `^NAME  ADDED       TOKENS  QUOTA\nada   \d{4}-\d\d-\d\d  0       -\n$`, ""},
		{"user token ada --label laptop --expires 90d", 0, `^[\w-]{64}\n$`, ""},
		{"user token ada --project=", 2, "^$", "--project is empty"},
		{"user token ada --read --project /harbour", 0, `^[\w-]{64}\n$`, ""},
		{"user token ada --expires soon", 2, "^$", "expected a duration such as 90d or 12h"},
		{"user token bob", 1, "^$", `user "bob": not found`},
		{"user tokens ada", 0, `(?m)^ID .*\n[0-9a-f]{16}  write  \S+  \S+ +laptop\n[0-9a-f]{16}  read +\S+  never +/harbour +\n$`, ""},
		{"user add bob", 0, "^Added bob", ""},
		{"user share ada --project /harbour --with bob", 0, "^Shared /harbour of ada with bob\n$", ""},
		{"user share ada --project /harbour --with ada", 2, "^$", `user "ada" has the project already`},
		{"user share ada --project /harbour", 2, "^$", "usage: ctxserver user share NAME --project PATH --with NAME"},
		{"user shares ada", 0, `^OF   WITH  PROJECT\nada  bob   /harbour\n$`, ""},
		{"user shares bob --json", 0, `^{"record":"share","user":"ada","project":"/harbour","with":"bob"}\n$`, ""},
		{"user unshare ada --project /harbour --with bob", 0, "^/harbour of ada is no longer shared with bob\n$", ""},
		{"user unshare ada --project /harbour --with bob", 1, "^$", "not found"},
		{"user rm bob", 0, "^Removed bob", ""},
		{"user invites", 0, "^ID  EXPIRES  SCOPE  PROJECT\n$", ""},
		{"user invite --expires 2d --public-url https://example.org/", 0, `^https://example.org/#invite=[\w-]{64}\n$`, ""},
		{"user invites", 0, `^ID .*\n[0-9a-f-]{36}  \d{4}-\S+ \S+  write  \n$`, ""},
		{"user invite --project=", 2, "^$", "--project is empty"},
		{"user invite --read --project /harbour --token-expires 90d --json", 0, `"scope":"read","project":"/harbour","lasts":7776000}\n$`, ""},
		{"user invites", 0, `\n[0-9a-f-]{36}  \d{4}-\S+ \S+  read   /harbour\n$`, ""},
		{"user invite --expires 1000d", 2, "^$", "an invitation lasts at most a year"},
		{"user uninvite x", 2, "^$", `"x" is not the id of an invitation`},
		{"user uninvite 00000000-0000-4000-8000-000000000000", 1, "^$", "not found"},
		{"user erase bob", 0, "^Erased bob", ""},
		{"user usage bob", 1, "^$", `user "bob": not found`},
		{"user usage ada", 0, "^DAY +REQUESTS +PROMPT TOKENS +ANSWER TOKENS\n$", ""},
		{"user revoke ada 0", 1, "^$", `token "0" of user "ada": not found`},
		{"user rm ada", 0, "^Removed ada. Undo with: ctxserver user restore ada\n$", ""},
		{"user ls --removed", 0, `ada   \d{4}-\d\d-\d\d  2`, ""},
		{"user erase bob", 1, "^$", `user "bob": not found`},
		{"user restore ada", 0, "^Restored ada\n$", ""},
		{"user erase ada", 1, "^$", `user "ada": not found`},
		{"user quota ada 10GB", 0, "^ada has a quota of 10 GB\n$", ""},
		{"user ls", 0, `ada .*  10 GB\n$`, ""},
		{"user quota ada none", 0, "^ada has no quota\n$", ""},
		{"user quota ada -5", 2, "^$", "unknown shorthand flag"},
		{"user quota ada much", 2, "^$", `quota "much": expected a size such as 10GB, or none`},
		{"user rm ada", 0, "^Removed ada. Undo with: ctxserver user restore ada\n$", ""},
		{"user erase ada", 0, "^Erased ada\n$", ""},
		{"user ls --removed", 0, `^NAME  ADDED  TOKENS  QUOTA\n$`, ""},
		{"key rotate", 2, "^$", "--key is missing"},
		{"nonsense", 2, "^$", "nonsense"},
	} {
		code, stdout, stderr := do(t, env, strings.Fields(step.args)...)
		if code != step.code || !regexp.MustCompile(step.stdout).MatchString(stdout) || !strings.Contains(stderr, step.stderr) {
			t.Errorf("%s: %d\n%s%s", step.args, code, stdout, stderr)
		}
	}
	if code, _, stderr := do(t, nil, "user", "ls"); code != 2 || !strings.Contains(stderr, "--dir is missing") {
		t.Errorf("without a folder: %d %s", code, stderr)
	}
}

// TestConfig: the environment wins over flags, and flags over the file.
func TestConfig(t *testing.T) {
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "secret")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "listen: 127.0.0.1:1\nidle: 3m\nmax-open: 7\ndir: /from/file\nplain-http: true\n")
	write(secret, "/from/secret\n")
	env := map[string]string{"CTXSERVER_MAX_OPEN": "9", "CTXSERVER_DIR_FILE": secret}
	_, out, stderr := do(t, env, "--json", "config", "--config", file, "--idle", "5m", "--max-open", "8")
	got := map[string][2]string{}
	for line := range strings.Lines(out) {
		var r struct{ Name, Value, Source string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		got[r.Name] = [2]string{r.Value, r.Source}
	}
	for name, want := range map[string][2]string{
		"listen": {"127.0.0.1:1", file}, "idle": {"5m0s", "flag"}, "max-open": {"9", "$CTXSERVER_MAX_OPEN"},
		"dir": {"/from/secret", "$CTXSERVER_DIR_FILE"}, "plain-http": {"true", file}, "audit": {"changes", "default"},
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v (%s)", name, got[name], want, stderr)
		}
	}
	for _, bad := range []struct {
		env  map[string]string
		args string
		want string
	}{
		{map[string]string{"CTXSERVER_DIR": "x", "CTXSERVER_DIR_FILE": secret}, "config", "are both set"},
		{map[string]string{"CTXSERVER_DIR_FILE": dir + "/none"}, "config", "no such file"},
		{map[string]string{"CTXSERVER_MAX_OPEN": "many"}, "config", "CTXSERVER_MAX_OPEN"},
		{nil, "config --audit everything", "expected none, changes or all"},
		{nil, "config --tls-cert x", "need each other"},
		{nil, "config --db x --key hcvault://CANARY@vault/transit/keys/one", "credentials do not belong into the address of a key"},
		{nil, "config --db x --key aws-kms://arn:aws:kms:x", "expected an address such as hcvault://"},
		{nil, "--dir " + dir + " --oidc-issuer https://example.org", "needs --oidc-client-id"},
		{nil, "--dir " + dir + " --listen 0.0.0.0:0", "needs --tls-cert and --tls-key, or --plain-http"},
	} {
		code, stdout, stderr := do(t, bad.env, strings.Fields(bad.args)...)
		if code != 2 || !strings.Contains(stderr, bad.want) || strings.Contains(stdout+stderr, "CANARY") {
			t.Errorf("%s: %d %s%s", bad.args, code, stdout, stderr)
		}
	}
	if _, out, _ := do(t, map[string]string{"CTXSERVER_OIDC_CLIENT_SECRET": "CANARY"}, "config"); strings.Contains(out, "CANARY") {
		t.Errorf("config prints a secret: %s", out)
	}
	write(file, "lisen: x\n")
	if code, _, stderr := do(t, nil, "config", "--config", file); code != 2 || !strings.Contains(stderr, `there is no setting "lisen"`) {
		t.Errorf("an unknown setting: %d %s", code, stderr)
	}
}

// TestDeployment: what server/deploy sets are settings.
func TestDeployment(t *testing.T) {
	known := map[string]bool{}
	(&app{config: newConfig(os.LookupEnv)}).root().PersistentFlags().VisitAll(func(f *pflag.Flag) { known[variable(f.Name)] = isSetting(f) })
	files, err := filepath.Glob("../../deploy/*")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`CTXSERVER_[A-Z_]+`).FindAllString(string(b), -1) {
			if !known[strings.TrimSuffix(name, "_FILE")] {
				t.Errorf("%s sets %s, which is no setting", path, name)
			}
		}
	}
}

// TestMetricsAddress asks for metrics at their address while the server runs.
func TestMetricsAddress(t *testing.T) {
	ctx, stop := contextOf(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"--json", "--dir", t.TempDir(), "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"}, w, os.Stderr, noEnv)
	}()
	var listening listeningRecord
	if err := json.NewDecoder(r).Decode(&listening); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]int{listening.Metrics: 200, listening.URL + "metrics": 404, listening.URL + "readyz": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", url, resp.StatusCode)
		}
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit status %d", code)
	}
	if _, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(listening.Metrics, "http://"), "/metrics")); err == nil {
		t.Error("metrics are served after the end")
	}
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(t.Context()))
}

func noEnv(string) (string, bool) { return "", false }
