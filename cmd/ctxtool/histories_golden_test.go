package main

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// The contexts of the samples in testdata/histories.
const (
	claudeID   = "02660914-48ed-515b-9ac5-ecea8ae3d306" // a session that goes on in a second file
	codexID    = "100f062a-47df-50b0-ae57-9793bf010563"
	openCodeID = "824792d7-6be8-5cc0-abd1-20b175a9224a"
	chatGPTID  = "6f115c88-f8ab-5d1f-9322-1fb48df593ff" // a tree
	traceID    = "9088efe8-555e-55f9-b649-088f86d00213" // a trajectory
)

// historyViews are what people see of imported histories, one file each.
var historyViews = map[string][]string{
	"ls":            {"ls"},
	"ls-long":       {"ls", "--long"},
	"show-claude":   {"show", claudeID},
	"show-full":     {"show", claudeID, "--range", "3:11", "--full"},
	"show-codex":    {"show", codexID},
	"show-opencode": {"show", openCodeID},
	"show-chatgpt":  {"show", chatGPTID, "--branch", "fork-1"},
	"show-trace":    {"show", traceID},
	"tree":          {"tree", chatGPTID},
	"tree-retried":  {"tree", claudeID},
	"diff":          {"diff", chatGPTID, "main", "fork-1"},
	"diff-retried":  {"diff", claudeID, "main", "retry"},
	"log":           {"log", claudeID},
	"du":            {"du", "--apparent"},
	"du-context":    {"du", "--apparent", claudeID},
}

// TestGoldenHistories compares what people see of samples of five tools with the files in testdata/golden-histories.
func TestGoldenHistories(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	views := map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC))) // of the bubble's clock
		g := &goldenStore{t, *newInProcess(t)}
		sample := func(name string) string { return filepath.Join("testdata", "histories", name) }
		g.do("", "import", sample("claude-monday.jsonl"), sample("claude-tuesday.jsonl"), sample(""))
		// Somebody works on with what was imported.
		g.do("", "branch", "fork", claudeID, "retry", "--at", "8")
		g.do(`{"id":"0195f0a0-0006-7000-8000-000000000001","created_at":"2026-06-01T08:59:00Z",`+
			`"message":{"role":"user","content":"Try it with testing/synctest instead."}}`+"\n"+
			`{"id":"0195f0a0-0006-7000-8000-000000000002","created_at":"2026-06-01T08:59:30Z",`+
			`"message":{"role":"assistant","content":"With a bubble, the timer needs no clock of its own."}}`+"\n",
			"append", claudeID, "--branch", "retry", "--jsonl", "--envelope")
		g.do("", "branch", "switch", claudeID, "retry")
		g.do("", "meta", claudeID, "--title", "The flaky beam timer")
		g.do("", "branch", "switch", claudeID, "main")
		time.Sleep(3 * time.Hour)
		for name, args := range historyViews {
			views[name] = g.view(args)
		}
	})
	compareGolden(t, "golden-histories", views)
}
