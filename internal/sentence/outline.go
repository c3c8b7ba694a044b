package sentence

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
)

// Passage is a paragraph, an item of a list or a row of a table, in Markdown.
type Passage struct {
	Text   string   // without the mark of an item, and without emphasis
	Leads  []string // the label, the introduction and the headings that it stands under, the nearest first
	Parent string   // the item that this one is indented below, if it ends with a colon
	Number string   // of an item: "2", or "B"
	Item   bool     // an item of a list, or a row of a table
	Code   bool     // code follows
	Title  bool     // a heading, or a line in bold
}

var (
	itemMark = regexp.MustCompile(`^(?:[-*+•]|(\d{1,2})[.)])\s+`)
	// optionMark begins a passage that offers a choice by its number or letter.
	optionMark = regexp.MustCompile(`(?i)^(?:(?:option|choice|approach|alternative)\s+)?(\d{1,2}|[a-e])\s*[.):—–-]+\s+`)
	separator  = regexp.MustCompile(`^[|:\s-]+$`)
	// label is compiled when it is first needed: its tables take longer than the other expressions together.
	label = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([\p{L}][\p{L}\p{N}'’/ -]{1,40}):\s+\S`) })
)

// maxLead is the number of words of the longest line that introduces what follows.
const maxLead = 14

// Outline cuts a text in Markdown into passages, in order. It leaves out code, quotations and lines that begin with a tag.
func Outline(text string) (all []Passage) {
	var o outliner
	for line := range strings.Lines(text) {
		o.add(strings.TrimRight(line, "\r\n"))
	}
	o.flush()
	return o.all
}

type outliner struct {
	all      []Passage
	fence    string
	heading  string
	intro    string // the line with a colon, or in bold, before a list
	parent   string // the item with a colon above items that are indented
	depth    int    // of parent
	open     *Passage
	wasTable bool
}

func (o *outliner) add(line string) {
	trimmed := strings.TrimSpace(line)
	if mark := fenceOf(trimmed); mark != "" && (o.fence == "" || strings.HasPrefix(mark, o.fence)) {
		o.flush()
		if o.fence == "" {
			o.fence = mark
			if len(o.all) > 0 {
				o.all[len(o.all)-1].Code = true
			}
		} else {
			o.fence = ""
		}
		return
	}
	if o.fence != "" {
		return
	}
	depth := len(line) - len(strings.TrimLeft(line, " \t"))
	switch {
	case trimmed == "":
		o.flush()
		o.wasTable = false
	case trimmed[0] == '>' || trimmed[0] == '<':
		o.flush()
	case trimmed[0] == '#':
		o.flush()
		o.heading, o.intro, o.parent = plainOf(strings.TrimLeft(trimmed, "# ")), "", ""
		o.all = append(o.all, Passage{Text: o.heading, Title: true, Number: numberOf(o.heading)})
	case trimmed[0] == '|':
		o.row(trimmed)
	case itemMark.MatchString(trimmed):
		o.flush()
		mark := itemMark.FindStringSubmatch(trimmed)
		if depth <= o.depth {
			o.parent = ""
		}
		p := Passage{Text: trimmed[len(mark[0]):], Parent: o.parent, Number: mark[1], Item: true}
		if text := plainOf(p.Text); strings.HasSuffix(text, ":") {
			o.parent, o.depth = text, depth
		}
		o.open = &p
	case o.open == nil && isBold(trimmed):
		o.intro, o.parent = plainOf(trimmed), ""
		o.all = append(o.all, Passage{Text: o.intro, Title: true, Number: numberOf(o.intro)})
	case o.open != nil:
		o.open.Text += " " + trimmed
	default:
		if depth == 0 {
			o.parent = ""
		}
		o.open = &Passage{Text: trimmed}
	}
}

// row adds a row of a table, except its head.
func (o *outliner) row(line string) {
	o.flush()
	if separator.MatchString(line) {
		return
	}
	if !o.wasTable {
		o.wasTable, o.intro = true, plainOf(strings.Trim(line, "| "))
		return
	}
	o.open = &Passage{Text: strings.Trim(line, "| "), Item: true}
	o.flush()
}

// flush ends the open Passage.
func (o *outliner) flush() {
	if o.open == nil {
		return
	}
	p := *o.open
	o.open = nil
	p.Text = plainOf(p.Text)
	if m := label().FindStringSubmatch(p.Text); m != nil {
		p.Leads = append(p.Leads, m[1])
	}
	for _, lead := range []string{o.parent, o.intro, o.heading} {
		if lead != "" && lead != p.Text {
			p.Leads = append(p.Leads, lead)
		}
	}
	p.Number = cmp.Or(p.Number, numberOf(p.Text))
	if !p.Item && strings.HasSuffix(p.Text, ":") {
		last := p.Text[strings.LastIndexAny(p.Text[:len(p.Text)-1], ".!?\n")+1:]
		if len(strings.Fields(last)) <= maxLead {
			o.intro, o.parent = strings.TrimSpace(last), ""
		}
	}
	o.all = append(o.all, p)
}

// numberOf returns the number or the letter of an option.
func numberOf(text string) string {
	if m := optionMark.FindStringSubmatch(text); m != nil {
		return strings.ToLower(m[1])
	}
	return ""
}

// isBold reports whether a line is emphasized as a whole.
func isBold(line string) bool {
	line = strings.TrimSuffix(line, ":")
	return len(line) > 4 && strings.HasPrefix(line, "**") && strings.HasSuffix(line, "**") && strings.Count(line, "**") == 2
}

// plainOf removes emphasis.
func plainOf(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "**", "")) }
