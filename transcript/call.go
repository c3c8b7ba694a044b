package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Summary is what a call does, in one line: its most telling argument, or all of them.
func (p *Part) Summary() string {
	o := ObjectOf(json.RawMessage(p.Text))
	for _, key := range []string{
		"command", "cmd", "pattern", "query", "file_path", "filePath", "notebook_path", "path", "url", "description", "prompt", "skill",
	} {
		if text := o.Text(key); text != "" {
			return text
		}
		if words := List(o[key]); words != nil {
			return strings.Join(texts(words), " ")
		}
	}
	if files := patchedFiles(p.Text); o == nil && len(files) > 0 {
		return strings.Join(files, ", ")
	}
	return p.Text
}

func texts(words []json.RawMessage) (all []string) {
	for _, w := range words {
		all = append(all, arguments(w))
	}
	return all
}

// patchedFiles are the files of a patch in the form of Codex.
func patchedFiles(patch string) (files []string) {
	for line := range strings.Lines(patch) {
		for _, mark := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				files = append(files, name)
			}
		}
	}
	return files
}

// Edits reports whether a call changes a file, without the cost of [Part.Diff].
func (p *Part) Edits() bool {
	if strings.Contains(p.Text, "*** Begin Patch") {
		return true
	}
	o := ObjectOf(json.RawMessage(p.Text))
	for _, edit := range append([]json.RawMessage{json.RawMessage(p.Text)}, List(o["edits"])...) {
		e := ObjectOf(edit)
		if e.first("old_string", "oldString", "oldText") != nil && e.first("new_string", "newString", "newText") != nil {
			return true
		}
	}
	return o.Text("content") != "" && o.Text("file_path", "filePath", "path") != ""
}

// Diff is the change that a call makes to a file, nil if it makes none: lines that begin with "+", "-" or " ".
func (p *Part) Diff() []string {
	o := ObjectOf(json.RawMessage(p.Text))
	if o == nil {
		if patchedFiles(p.Text) == nil {
			return nil
		}
		return strings.Split(strings.TrimSpace(p.Text), "\n")
	}
	var lines []string
	for _, edit := range append([]json.RawMessage{json.RawMessage(p.Text)}, List(o["edits"])...) {
		e := ObjectOf(edit)
		before, after := e.first("old_string", "oldString", "oldText"), e.first("new_string", "newString", "newText")
		if before != nil && after != nil {
			lines = append(lines, difference(arguments(before), arguments(after))...)
		}
	}
	if content := o.Text("content"); lines == nil && content != "" && o.Text("file_path", "filePath", "path") != "" {
		lines = difference("", content)
	}
	return lines
}

// Changed counts the lines that a diff adds and removes, as in "+3 −1".
func Changed(diff []string) string {
	added, removed := CountChanged(diff)
	return fmt.Sprintf("+%d −%d", added, removed)
}

// CountChanged counts the lines that a diff adds and removes.
func CountChanged(diff []string) (added, removed int64) {
	for _, l := range diff {
		switch {
		case strings.HasPrefix(l, "*** "): // the frame of a patch
		case strings.HasPrefix(l, "+"):
			added++
		case strings.HasPrefix(l, "-"):
			removed++
		}
	}
	return added, removed
}

// difference is the change from one text to another, with the lines around it.
func difference(before, after string) (lines []string) {
	unified := string(diff.Diff("before", []byte(ended(before)), "after", []byte(ended(after))))
	hunks := strings.Split(unified, "\n@@ ")
	for i, hunk := range hunks[min(1, len(hunks)):] {
		if i > 0 {
			lines = append(lines, " ⋯")
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(hunk, "\n"), "\n")[1:]...)
	}
	return lines
}

// ended is a text whose last line ends.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
