package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestTutorials follows tutorials as docs/follow.sh does, word by word, and compares what a block prints with the block of
// language text behind it: ids, sizes and times may be others, and "…" stands for anything. The one for a team is part of TestGuide,
// in server/.
func TestTutorials(t *testing.T) {
	for _, tool := range []string{"bash", "go", "timeout"} {
		if _, err := exec.LookPath(tool); err != nil || runtime.GOOS == "windows" {
			t.Skipf("needs a shell of Unix with %s", tool)
		}
	}
	for _, test := range []struct {
		page    string
		answers int
	}{{"history", 3}, {"framework", 5}} {
		t.Run(test.page, func(t *testing.T) {
			page := "docs/tutorials/" + test.page + ".md"
			seen := followPage(t, page)
			all := shownAnswers(t, "../../"+page)
			if len(all) != test.answers {
				t.Errorf("%d answers found", len(all))
			}
			for line, shown := range all {
				pattern := regexp.QuoteMeta(uuids.ReplaceAllString(plainly(shown), "ID"))
				pattern = "^" + strings.NewReplacer("\n…", `[\s\S]*`, "…", `[\s\S]*`).Replace(pattern) + "$"
				if !regexp.MustCompile(pattern).MatchString(uuids.ReplaceAllString(plainly(seen[line]), "ID")) {
					t.Errorf("%s:%d prints\n%s\nwanted\n%s", page, line, seen[line], shown)
				}
			}
		})
	}
}

// followPage returns what each block of a page prints, by its line.
func followPage(t *testing.T, page string) map[int]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "../../docs/follow.sh", "--here", page)
	env, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(env))
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "GOCACHE="+caches[0], "GOMODCACHE="+caches[1], "TZ=UTC", "LC_ALL=C", "CTXDIR_NO_GC=1",
		"CTXDIR_STORE=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
	}
	seen := map[int]string{}
	for _, part := range strings.Split("\n"+string(out), "\n== "+page+":")[1:] {
		line, text, _ := strings.Cut(part, "\n")
		n, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		seen[n] = text
	}
	return seen
}

// shownAnswers are the blocks of language text, by the line of the commands before.
func shownAnswers(t *testing.T, path string) map[int]string {
	t.Helper()
	_, commands := blocks(t, path, "sh")
	texts, lines := blocks(t, path, "text")
	all := map[int]string{}
	for i, text := range texts {
		before := 0
		for _, c := range commands {
			if c < lines[i] {
				before = c
			}
		}
		all[before] = text
	}
	return all
}
