package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

func TestRenderMessage(t *testing.T) {
	id := uuid.MustParse("0195f0a0-0000-7000-8000-000000000001")
	body := json.RawMessage(
		`{"role":"user","content":[{"type":"text","text":"bell\u0007 red\u001b[31m\nnext"},` +
			`{"type":"tool_use","name":"Bash","input":{"command":"echo one; echo two"}}]}`,
	)
	m := &ctxdir.Message{ID: id, Position: 7, Role: "user", CreatedAt: time.Date(2025, 3, 4, 5, 6, 7, 0, time.Local), Stored: body}
	edited, lost, typed := *m, *m, *m
	edited.Edited = true
	lost.Unavailable = errors.New("file is\nempty")
	blank := *m
	blank.Stored = json.RawMessage(`{"role":"user","content":[{"type":"text","text":"\n\n"}]}`)
	typed.Role, typed.Type = "", "progress"
	typed.Stored = json.RawMessage(`{"uuid":"x","n":1}`)
	head := "7  user  2025-03-04 05:06:07  " + id.String()
	tests := []struct {
		name string
		r    renderer
		m    *ctxdir.Message
		want string
	}{
		{"plain", renderer{fold: 20, tools: toolsShort}, m, head + "\nbell\a red\x1b[31m\nnext\n> Bash echo one; ec…\n"},
		{
			"terminal",
			renderer{fold: 80, terminal: true, tools: toolsShort},
			m,
			"── " + head + " ─────────\nbell red[31m\nnext\n> Bash echo one; echo two\n",
		},
		{
			"full",
			renderer{fold: 30, tools: toolsFull},
			m,
			head + "\nbell\a red\x1b[31m\nnext\n> Bash\n  {\n    \"command\": \"echo one; echo two\"\n  }\n",
		},
		{"blank", renderer{fold: 80}, &blank, head + "\n(no content)\n"},
		{
			"forks",
			renderer{fold: 80, forked: 7, forks: map[int64][]string{7: {"no"}, 8: {"a", "b\n"}}},
			&blank,
			head + "\n(no content)\n\n├─ forks here: a, b \n",
		},
		{"heads", renderer{fold: 80, headsOnly: true}, m, head + "  158 B\n"},
		{"edited", renderer{fold: 80, headsOnly: true}, &edited, head + "  158 B  edited by hand\n"},
		{"lost", renderer{fold: 80}, &lost, head + "\nunavailable: file is empty\n"},
		{"type", renderer{fold: 80}, &typed, strings.Replace(head, "user", "[progress]", 1) + "\n  n: 1\n"},
		{
			"colour",
			renderer{fold: 80, colour: true},
			&lost,
			"\x1b[1m7\x1b[0m  \x1b[1;34muser\x1b[0m  \x1b[2m2025-03-04 05:06:07\x1b[0m  \x1b[2m" + id.String() +
				"\x1b[0m\n\x1b[31munavailable: file is empty\x1b[0m\n",
		},
	}
	for _, test := range tests {
		var b strings.Builder
		test.r.w = &b
		if err := test.r.message(&record.Loaded{Message: test.m, Body: test.m.Stored}); err != nil || b.String() != test.want {
			t.Errorf("%s: %v\n%q\nwanted\n%q", test.name, err, b.String(), test.want)
		}
	}
}

// TestFolded checks the number of hidden lines.
func TestFolded(t *testing.T) {
	r := renderer{fold: 24}
	for text, want := range map[string]string{
		"one":                       "< one",
		"\none\n":                   "< one",
		"one\ntwo":                  "< one two (2 lines)",
		"one\ntwo and three\nfour":  "< one two and… (3 lines)",
		strings.Repeat("漢字\n", 999): "< 漢字 漢字… (999 lines)",
	} {
		if got := r.folded("< ", text); got != want {
			t.Errorf("%.40q: %q, wanted %q", text, got, want)
		}
	}
}

func TestReadLine(t *testing.T) {
	type line struct {
		text string
		long bool
	}
	tests := []struct {
		in   string
		most int64
		want []line
	}{
		{"", 10, nil},
		{"a", 10, []line{{text: "a"}}},
		{"a\nb\n", 10, []line{{text: "a"}, {text: "b"}}},
		{"\n\nb", 10, []line{{}, {}, {text: "b"}}},
		{"0123456789\n", 10, []line{{text: "0123456789"}}},
		{"0123456789a\nb", 10, []line{{long: true}, {text: "b"}}},
		{"0123456789a", 10, []line{{long: true}}},
		{strings.Repeat("x", 100) + "\ny\n", 100, []line{{text: strings.Repeat("x", 100)}, {text: "y"}}},
		{strings.Repeat("x", 200) + "\ny\n", 100, []line{{long: true}, {text: "y"}}},
	}
	for _, test := range tests {
		r := bufio.NewReaderSize(strings.NewReader(test.in), 16)
		var got []line
		for {
			text, err := readLine(r, test.most)
			if err == io.EOF {
				break
			}
			got = append(got, line{string(text), errors.Is(err, ctxdir.ErrTooLarge)})
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%.20q: %v, wanted %v", test.in, got, test.want)
		}
	}
}
