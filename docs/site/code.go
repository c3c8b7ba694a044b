package main

import (
	"errors"
	"image"
	_ "image/png" // pictures of the page
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// highlight gives a block of code a frame with a button that copies it, and classes to its words.
func highlight(pre *html.Node) error {
	code := pre.FirstChild
	if code == nil || code.DataAtom != atom.Code {
		return nil
	}
	language := strings.TrimPrefix(get(code, "class"), "language-")
	text := textOf(code)
	around := element(atom.Div, "class", "code")
	if language == "console" {
		set(around, "data-copy", commands(text))
	}
	pre.Parent.InsertBefore(around, pre)
	pre.Parent.RemoveChild(pre)
	around.AppendChild(pre)
	set(pre, "tabindex", "0")
	if lexers.Get(language) == nil {
		return nil
	}
	for c := code.FirstChild; c != nil; c = code.FirstChild {
		code.RemoveChild(c)
	}
	if file := written.FindStringSubmatch(text); file != nil && lexers.Get(file[2]) != nil { // a program in a command
		return errors.Join(paint(code, language, file[1]), paint(code, file[2], file[3]), paint(code, language, file[4]))
	}
	return paint(code, language, text)
}

// written is a command that writes a file: what is before, the extension of its name, its text, and what is behind.
var written = regexp.MustCompile(`(?s)^(.*cat > \S+\.(\w+) <<'END'\n)(.*)(\nEND\n.*)$`)

// paint appends text to a block, its words in the colours of a language.
func paint(code *html.Node, language, text string) error {
	tokens, err := chroma.Coalesce(lexers.Get(language)).Tokenise(&chroma.TokeniseOptions{State: "root"}, text)
	if err != nil {
		return err
	}
	for _, t := range tokens.Tokens() {
		word := &html.Node{Type: html.TextNode, Data: t.Value}
		if class := classOf(t.Type); class != "" {
			span := element(atom.Span, "class", class)
			span.AppendChild(word)
			word = span
		}
		code.AppendChild(word)
	}
	return nil
}

// classOf is one of the few colours that code has on the page of ctxtool serve, too.
func classOf(t chroma.TokenType) string {
	switch {
	case t == chroma.GenericPrompt:
		return "prompt"
	case t == chroma.GenericOutput:
		return "output"
	case t.InCategory(chroma.Comment):
		return "com"
	case t.InCategory(chroma.Keyword) || t == chroma.NameTag:
		return "kw"
	case t.InSubCategory(chroma.LiteralString):
		return "str"
	case t.InSubCategory(chroma.LiteralNumber):
		return "num"
	case t == chroma.NameFunction:
		return "fn"
	default:
		return ""
	}
}

var document = regexp.MustCompile(`<<'?(\w+)'?$`)

// commands are what a reader would type of a terminal session, without what it printed.
func commands(session string) string {
	var typed strings.Builder
	end := ""
	for line := range strings.Lines(session) {
		command, is := strings.CutPrefix(line, "$ ")
		switch {
		case end != "":
			typed.WriteString(line)
			if strings.TrimSpace(line) == end {
				end = ""
			}
		case is:
			typed.WriteString(command)
			if here := document.FindStringSubmatch(strings.TrimSpace(command)); here != nil {
				end = here[1]
			}
		}
	}
	return typed.String()
}

var viewBox = regexp.MustCompile(`viewBox="0 0 ([0-9.]+) ([0-9.]+)"`)

// measure returns the size of a picture, or 0.
func measure(name string) (width, height int) {
	f, err := os.Open(name)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	if c, _, err := image.DecodeConfig(f); err == nil {
		return c.Width, c.Height
	}
	head := make([]byte, 1000)
	n, _ := f.ReadAt(head, 0)
	box := viewBox.FindSubmatch(head[:n])
	if box == nil {
		return 0, 0
	}
	w, _ := strconv.ParseFloat(string(box[1]), 64)
	h, _ := strconv.ParseFloat(string(box[2]), 64)
	return int(w), int(h)
}
