package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/spf13/cobra"
)

// toolFolder is where a tool keeps its histories.
type toolFolder struct {
	tool importer.Format
	path string
}

// usualPlaces returns the places of all tools for this user. A pattern stands for each path that matches.
func (a *app) usualPlaces() []toolFolder {
	home := cmp.Or(a.env("HOME"), a.env("USERPROFILE"))
	if home == "" {
		return nil
	}
	in := func(names ...string) string { return filepath.Join(append([]string{home}, names...)...) }
	claude := cmp.Or(a.env("CLAUDE_CONFIG_DIR"), in(".claude"))
	codex := cmp.Or(a.env("CODEX_HOME"), in(".codex"))
	opencode := filepath.Join(cmp.Or(a.env("XDG_DATA_HOME"), in(".local", "share")), "opencode")
	return []toolFolder{
		{importer.ClaudeCode, filepath.Join(claude, "projects")},
		{importer.Codex, filepath.Join(codex, "sessions")},
		{importer.Codex, filepath.Join(codex, "archived_sessions")},
		{importer.OpenCode, filepath.Join(opencode, "storage")},
		{importer.OpenCode, filepath.Join(opencode, "opencode.db")},
		{importer.Gemini, in(".gemini", "tmp", "*", "chats")},
		{importer.Copilot, in(".copilot", "session-state")},
		{importer.Pi, in(".pi", "agent", "sessions")},
		{importer.OpenHands, in(".openhands", "sessions")},
		{importer.OpenHands, in(".openhands", "conversations")},
	}
}

type foundRecord struct {
	Record string `json:"record"`
	Tool   string `json:"tool"`
	Path   string `json:"path"`
	Files  int    `json:"files"`
}

// findHistories returns the usual places that hold histories, and says what it found.
func (a *app) findHistories() (paths []string, err error) {
	for _, p := range a.usualPlaces() {
		matches := []string{p.path}
		if strings.Contains(p.path, "*") {
			matches, _ = filepath.Glob(p.path) // fails only for a malformed pattern
		}
		for _, path := range matches {
			if _, err := os.Stat(path); err != nil {
				continue
			}
			files := 0
			for _, err := range importer.Files(path) {
				if err == nil {
					files++
				}
			}
			if files == 0 {
				continue
			}
			paths = append(paths, path)
			if a.json {
				err = a.record(foundRecord{"found", string(p.tool), path, files})
			} else {
				err = a.printf("%-12s %10s  %s\n", p.tool, plain.Count(files, "file"), plain.OneLine(path))
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return paths, nil
}

// noStoreHint says how to get a store: by importing what other tools keep here, if there is something.
func (a *app) noStoreHint() string {
	var tools []string
	for _, p := range a.usualPlaces() {
		matches, _ := filepath.Glob(p.path)
		if len(matches) > 0 && !slices.Contains(tools, string(p.tool)) {
			tools = append(tools, string(p.tool))
		}
	}
	what := `"ctxtool import PATH" to import conversations`
	if len(tools) > 0 {
		what = `"ctxtool import" to import the conversations of ` + strings.Join(tools, ", ")
	}
	return "run " + what + `, or "ctxtool init" to create an empty store here, or name one with --store DIR`
}

// choosePlaces returns the usual places that hold histories, once the user agreed.
func (a *app) choosePlaces(cmd *cobra.Command, agreed bool) ([]string, error) {
	paths, err := a.findHistories()
	switch {
	case err != nil:
		return nil, err
	case len(paths) == 0:
		return nil, usage(cmd, "no histories found in the usual places; pass a PATH")
	case agreed:
		return paths, nil
	case a.json || !a.asksOnTerminal() || !a.out.OnTerminal():
		return nil, usage(cmd, "pass --yes to import these, or a PATH")
	}
	store, err := a.storePath()
	if err != nil {
		return nil, err
	}
	yes, err := a.ask(cmd.Context(), "Import these into "+store+"?")
	if err == nil && !yes {
		err = &verbError{exitFailed, "imported nothing", ""}
	}
	return paths, err
}
