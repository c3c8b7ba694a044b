package message

import (
	"errors"
	"strings"
	"testing"
)

// TestValid: what a valid envelope is, as docs/FORMAT.md says it. Each case is an envelope with something in place of a
// part of it.
func TestValid(t *testing.T) {
	const (
		id   = "0198c0de-0000-7000-8000-00000000abcd"
		line = "0198c0de-0000-7000-8000-00000000eeee"
		prev = "0198c0de-0000-7000-8000-00000000aaaa"
	)
	const text = `{"ctxdir":"message/1","id":"` + id + `","line":"` + line + `","position":3,"prev":"` + prev +
		`","stored_at":"2026-01-02T03:04:05Z","role":"user","message":{"a":1}}`
	want, err := Parse([]byte(text))
	if err != nil || string(want.AppendTo(nil)) != text {
		t.Fatalf("%s, %v", want.AppendTo(nil), err)
	}
	for name, x := range map[string]struct {
		old, new string
		same     bool // it says the same
	}{
		"as it is":           {"", "", true},
		"byte order mark":    {text, "\ufeff" + text, true},
		"line ends":          {text, text + "\r\n\r\n", true},
		"mark in the middle": {`,"role"`, "\ufeff,\"role\"", false},
		"two marks":          {text, "\ufeff\ufeff" + text, false},
		"white space":        {`,"role":"user"`, " ,\t\"role\" :\r\n\"user\"", true},
		"upper-case id":      {id, strings.ToUpper(id), true},
		"upper-case ids": {
			text, strings.NewReplacer(id, strings.ToUpper(id), line, strings.ToUpper(line), prev, strings.ToUpper(prev)).Replace(text), true,
		},
		"upper-case id, another order": {
			`"id":"` + id + `","line":"` + line + `"`, `"line":"` + line + `","id":"` + strings.ToUpper(id) + `"`, true,
		},
		"id without hyphens": {id, strings.ReplaceAll(id, "-", ""), false},
		"id in braces":       {id, "{" + id + "}", false},
		"id as URN":          {id, "urn:uuid:" + id, false},
		"prev in braces":     {prev, "{" + prev + "}", false},
		"id a number":        {`"` + id + `"`, `7`, false},
		"another time zone":  {"2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", true},
		"no id":              {`"id"`, `"no"`, false},
		"id null":            {`"` + id + `"`, `null`, false},
		"no stored_at":       {`"stored_at"`, `"no"`, false},
		"stored_at null":     {`"2026-01-02T03:04:05Z"`, `null`, false},
		"no message":         {`"message":{`, `"no":{`, false},
		"message null":       {`{"a":1}`, `null`, false},
		"message a list":     {`{"a":1}`, `[]`, false},
		"optional members null": {
			`"role":"user"`,
			`"role":"user","type":null,"file":null,"payloads":null,"created_at":null,"origin_id":null,"source":null,"branch":null`, true,
		},
		"unknown member":            {`"role":"user"`, `"role":"user","mood":["good"]`, true},
		"repeated, the last counts": {`"role":"user"`, `"role":"tool","role":"user"`, true},
		"position with a fraction":  {`"position":3`, `"position":3.0`, false},
		"position below zero":       {`"position":3`, `"position":-3`, false},
		"position a text":           {`"position":3`, `"position":"3"`, false},
		"invalid UTF-8 in role":     {`user`, "us\xffer", false},
		"invalid UTF-8 in a name":   {`"role":`, "\"r\xff\":1,\"role\":", false},
		"half a surrogate in UTF-8": {`user`, "\xed\xa0\x80", false},
		"overlong UTF-8":            {`user`, "\xc0\xaf", false},
		"something behind it":       {text, text + "{}", false},
		"a NUL behind it":           {text, text + "\x00", false},
		"another kind":              {"message/1", "context/1", false},
	} {
		e, err := Parse([]byte(strings.Replace(text, x.old, x.new, 1)))
		switch {
		case x.same && (err != nil || string(e.AppendTo(nil)) != text):
			t.Errorf("%s: %s, %v", name, e.AppendTo(nil), err)
		case !x.same && !errors.Is(err, ErrMalformed):
			t.Errorf("%s: %s, %v", name, e.AppendTo(nil), err)
		}
	}
}
