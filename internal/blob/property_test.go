package blob

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// chars are what JSON strings are made of, as spelled: runs of one writer and of several.
var chars = []string{
	"a", "b", " ", "/", `\/`, "<", `\u003c`, `\u003C`, "é", `\u00e9`, `\u00E9`, "\u2028", `\u2028`, "😀", `\ud83d\ude00`,
	`\uD83D\uDE00`, `\ud83d`, `\n`, `\u000a`, `\b`, `\u0008`, `\\`, `\"`, `\u0022`, `\u0000`, "\x7f", `\u007f`, "$", `\u0024`,
	"blob", "{", "}", "[", "]", ",", ":", "~",
}

func stringToken(r *rapid.T) string {
	switch rapid.IntRange(0, 9).Draw(r, "kind") {
	case 0, 1: // of one writer
		s := spelling(rapid.IntRange(0, 31).Draw(r, "spelling"))
		return `"` + string(s.spell(nil, []byte(rapid.StringN(0, 40, 400).Draw(r, "text")))) + `"`
	case 2: // Go, Python without and with raw characters
		b, _ := json.Marshal(rapid.String().Draw(r, "text"))
		return string(b)
	case 3: // base64, some of it long enough
		codecs := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}
		codec := rapid.SampledFrom(codecs).Draw(r, "codec")
		text := codec.EncodeToString(noise(rapid.IntRange(150, 300).Draw(r, "size")))
		if rapid.Bool().Draw(r, "uri") {
			text = rapid.SampledFrom([]string{"data:image/png;base64,", "data:;base64,", "DATA:a/b;c=d;BASE64,", "data:,"}).Draw(r, "prefix") + text
		}
		if rapid.Bool().Draw(r, "slashes") {
			text = strings.ReplaceAll(text, "/", `\/`)
		}
		return `"` + text + `"`
	}
	return `"` + strings.Join(rapid.SliceOfN(rapid.SampledFrom(chars), 0, 12).Draw(r, "chars"), "") + `"`
}

var names = []string{
	`"$blob"`, `"$$blob"`, `"$$$blob"`, `"\u0024blob"`, `"$\u0024blob"`, `"\u0024$blob"`, `"$bl\u006fb"`, `"size"`, `"data"`,
	`"media_type"`, `"type"`, `"format"`, `"source"`, `"content"`, `"encoding"`, `"images"`, `""`,
}

func value(r *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 6).Draw(r, "value")
	if depth == 0 && kind < 4 {
		kind = 6
	}
	switch kind {
	case 0, 1, 2:
		var members []string
		for range rapid.IntRange(0, 4).Draw(r, "members") {
			name := rapid.SampledFrom(names).Draw(r, "name")
			if rapid.IntRange(0, 3).Draw(r, "any") == 0 {
				name = stringToken(r)
			}
			members = append(members, name+":"+value(r, depth-1))
		}
		return "{" + strings.Join(members, ",") + "}"
	case 3:
		var elements []string
		for range rapid.IntRange(0, 4).Draw(r, "elements") {
			elements = append(elements, value(r, depth-1))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case 4:
		return rapid.SampledFrom([]string{
			"null", "true", "-1.50e+7", "0", `"base64"`, `"image/png"`, `{"$blob":"x","size":1}`,
		}).Draw(r, "literal")
	}
	return stringToken(r)
}

// TestComesBackByteForByte is the promise of the package.
func TestComesBackByteForByte(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		body := "{" + `"m":` + value(r, 4) + "}"
		threshold := int64(rapid.SampledFrom([]int{-1, 0, 1, 5, 20, 200, 300}).Draw(r, "threshold"))
		stored, refs, m := roundTrip(rapidT{t, r}, body, threshold)
		for _, ref := range refs {
			if ref.Encoding == "" && (threshold < 0 || ref.Size < threshold) {
				r.Fatalf("%d bytes moved at %d", ref.Size, threshold)
			}
		}
		// What is left inline and long enough could not be spelled.
		if threshold >= 0 {
			s := newScanner([]byte(stored))
			for k, before := s.next(), tokenEnd; k != tokenEnd; before, k = k, s.next() {
				if k == tokenName && s.atReference(before) {
					s.reference(0)
				} else if k == tokenString {
					text, seems, ok := decode(nil, s.inside())
					if _, same := respell(seems, text, s.inside()); ok && same && int64(len(text)) >= threshold {
						r.Fatalf("%q stayed at %d", text, threshold)
					}
				}
			}
		}
		// To another threshold: the same as from scratch.
		other := int64(rapid.SampledFrom([]int{-1, 0, 10, 250}).Draw(r, "other"))
		want, _, err := Externalise([]byte(body), Policy{other}, m.put)
		if err != nil {
			r.Fatal(err)
		}
		got, _, err := Reexternalise([]byte(stored), Policy{other}, m.get, m.put)
		if err != nil || !bytes.Equal(got, want) {
			r.Fatalf("from %d to %d: %s, %v\nwanted %s", threshold, other, got, err, want)
		}
		// An edit by hand that puts a string back is the same message.
		if len(refs) > 0 {
			ref := refs[rapid.IntRange(0, len(refs)-1).Draw(r, "edited")]
			edited := stored[:ref.Offset] + string(ref.restore(nil, m[ref.Sum])) + stored[ref.end:]
			if back, err := Resolve([]byte(edited), m.get); err != nil || string(back) != body {
				r.Fatalf("edited: %s, %v", back, err)
			}
		}
	})
}

// rapidT lets roundTrip fail a rapid check.
type rapidT struct {
	*testing.T
	r *rapid.T
}

func (t rapidT) Fatal(args ...any)                 { t.r.Fatal(args...) }
func (t rapidT) Fatalf(format string, args ...any) { t.r.Fatalf(format, args...) }

// TestSpellingAgainstEncodingJSON: what we decode and spell is what the standard library means.
func TestSpellingAgainstEncodingJSON(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String().Draw(r, "text")
		for s := range spelling(32) {
			token := append(s.spell([]byte{'"'}, []byte(text)), '"')
			var got string
			if err := json.Unmarshal(token, &got); err != nil || got != text {
				r.Fatalf("%v: %s, %v", s, token, err)
			}
			if back, _, ok := decode(nil, token[1:len(token)-1]); !ok || string(back) != text {
				r.Fatalf("%v: %s decoded as %q", s, token, back)
			}
			redundant := s&spelledASCII != 0 && s&spelledLines != 0
			if p, ok := parseSpelling(s.String()); p != s || ok == redundant {
				r.Fatalf("%v read as %v", s, p)
			}
		}
		marshaled, _ := json.Marshal(text)
		inside := marshaled[1 : len(marshaled)-1]
		back, seems, ok := decode(nil, inside)
		if _, same := respell(seems, back, inside); !ok || !same {
			// Go's own spelling is uniform except where a text holds < beside a raw character of the same kind,
			// which it never does.
			r.Fatalf("%s cannot be spelled again", marshaled)
		}
	})
}

func FuzzExternalise(f *testing.F) {
	f.Add([]byte(`{"a":"b","$blob":"\u00e9"}`), int64(0))
	f.Add([]byte(`{"source":{"type":"base64","data":"`+strings.Repeat("QUJD", 80)+`"}}`), int64(-1))
	f.Fuzz(func(t *testing.T, body []byte, text int64) {
		if json.Valid(body) && utf8.Valid(body) {
			roundTrip(t, string(body), text)
			return
		}
		_, _, _ = Externalise(body, Policy{text}, payloadsOf{}.put) // must not panic
	})
}

func FuzzResolve(f *testing.F) {
	f.Add([]byte(`{"a":{"$blob":"` + SumOf(nil).String() + `","size":0,"spelling":"ascii"},"$$blob":1}`))
	f.Add([]byte(`{"$blob":"","size":-1,"encoding":"base64","prefix":"x"}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		refs, rerr := Refs(stored)
		asked := 0
		body, err := Resolve(stored, func(r Ref) ([]byte, error) { asked++; return make([]byte, min(r.Size, 100)), nil })
		if rerr == nil && body == nil && len(stored) > 0 {
			t.Error("no body", err)
		}
		if rerr == nil && asked > len(refs) {
			t.Errorf("asked for %d payloads, %d references", asked, len(refs))
		}
		if json.Valid(stored) && utf8.Valid(stored) && !json.Valid(body) {
			t.Errorf("%s became %s", stored, body)
		}
	})
}
