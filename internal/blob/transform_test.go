package blob

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// payloadsOf is a blob store for tests of the transform.
type payloadsOf map[Sum][]byte

func (m payloadsOf) put(b []byte) (Sum, error) {
	sum := SumOf(b)
	m[sum] = bytes.Clone(b)
	return sum, nil
}

var errGone = errors.New("gone")

func (m payloadsOf) get(r Ref) ([]byte, error) {
	if b, ok := m[r.Sum]; ok {
		return b, nil
	}
	return nil, errGone
}

// there and back, and what must hold of both.
func roundTrip(t testing.TB, body string, text int64) (stored string, refs []Ref, m payloadsOf) {
	t.Helper()
	m = payloadsOf{}
	out, refs, err := Externalise([]byte(body), Policy{text}, m.put)
	if err != nil {
		t.Fatalf("Externalise(%s): %v", body, err)
	}
	if json.Valid([]byte(body)) != json.Valid(out) {
		t.Fatalf("not valid any more: %s", out)
	}
	back, err := Resolve(out, m.get)
	if err != nil || string(back) != body {
		t.Fatalf("came back as %s, %v\nwanted       %s\nstored       %s", back, err, body, out)
	}
	found, err := Refs(out)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		r := &found[i]
		if r.Problem != "" || int64(len(m[r.Sum])) != r.Size || out[r.Offset] != '{' {
			t.Fatalf("reference %+v in %s", *r, out)
		}
		r.Path = ""
	}
	if d := cmp.Diff(found, refs, cmp.AllowUnexported(Ref{})); d != "" {
		t.Fatalf("Refs differ from those of Externalise: %s", d)
	}
	return string(out), refs, m
}

func TestSpellings(t *testing.T) {
	for _, c := range []struct{ inside, want string }{
		{`plain é / < \u0000`, ""},
		{`\b\f\n\r\t\"\\\u001f\u007f`, "ascii"}, // Python writes DEL so
		{`\b\f\n\r\t\"\\\u001f` + "\x7f", ""},
		{`caf\u00e9 \ud83d\ude00`, "ascii"},
		{`caf\u00e9 \u2028`, "ascii"},
		{`\u003cb\u003e \u0026 é`, "html"},
		{`\u003cb\u003e \u2028\u2029`, "html+lines"},
		{`é\u2028`, "lines"},
		{`a\/b é`, "slash"},
		{`a\/b \u00e9`, "ascii+slash"},
		{`caf\u00E9 \u000B`, "ascii+upper"},
		{`\u000B`, "upper"},
		{`\u003C\u00E9`, "ascii+html+upper"},
		{`\u0041`, "inline"},           // nobody escapes an A
		{`\u00e9 é`, "inline"},         // half of them
		{`\u003c &`, "inline"},         //
		{`a\/b c/d`, "inline"},         //
		{`\u00e9 \u00EA`, "inline"},    //
		{`\u000a`, "inline"},           // as \n
		{`\ud83d`, "inline"},           // half a pair
		{`\ude00\ud83d`, "inline"},     //
		{`\ud83dx\ude00`, "inline"},    //
		{`\ud83d\n`, "inline"},         //
		{`\ufffd \\ud800 é`, "inline"}, //
		{`\ufffd \\ud800 \u00e9`, "ascii"},
		{`\u2028 ` + "\u2029", "inline"},
		{"\u2028\u2029", ""},
		{`\\\\`, ""},
		{``, ""},
	} {
		body := `{"k":"` + c.inside + `"}`
		_, refs, _ := roundTrip(t, body, 0)
		got := "inline"
		if len(refs) == 1 {
			got = refs[0].spelling.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, wanted %q", c.inside, got, c.want)
		}
	}
}

func TestThreshold(t *testing.T) {
	body := `["aaaa","aaaaa","\u00e9\u00e9","\u00e9\u00e9\u00e9",{"longer than all":1}]`
	for text, want := range map[int64][]int64{
		-1: nil, 0: {4, 5, 4, 6}, 4: {4, 5, 4, 6}, 5: {5, 6}, 6: {6}, 7: nil,
	} {
		_, refs, _ := roundTrip(t, body, text)
		var sizes []int64
		for _, r := range refs {
			sizes = append(sizes, r.Size)
		}
		if d := cmp.Diff(want, sizes); d != "" {
			t.Errorf("threshold %d: %s", text, d)
		}
	}
}

func TestStoredForm(t *testing.T) {
	sum := SumOf([]byte("hello"))
	stored, _, _ := roundTrip(t, `{"a":"hello","b":["h\u00e9llo"]}`, 5)
	want := `{"a":{"$blob":"` + sum.String() + `","size":5},"b":[{"$blob":"` + SumOf(
		[]byte("héllo"),
	).String() + `","size":6,"spelling":"ascii"}]}`
	if stored != want {
		t.Errorf("%s\nwanted %s", stored, want)
	}
	png := noise(300)
	uri := "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
	stored, _, _ = roundTrip(t, `{"url":"`+strings.ReplaceAll(uri, "/", `\/`)+`"}`, -1)
	want = `{"url":{"$blob":"` + SumOf(
		png,
	).String() + `","size":300,"spelling":"slash","encoding":"base64","prefix":"data:image/png;base64,","media_type":"image/png"}}`
	if stored != want {
		t.Errorf("%s\nwanted %s", stored, want)
	}
}

func TestEscapedNames(t *testing.T) {
	for in, want := range map[string]string{
		`{"$blob":1}`:                                          `{"$$blob":1}`,
		`{"$$blob":1,"$blob":2}`:                               `{"$$$blob":1,"$$blob":2}`,
		`{"a":1,"$blob":"x"}`:                                  `{"a":1,"$$blob":"x"}`,
		`{"\u0024blob":1}`:                                     `{"$\u0024blob":1}`,
		`{"$\u0024bl\u006fb":{"$blob":[]}}`:                    `{"$$\u0024bl\u006fb":{"$$blob":[]}}`,
		`{"$blobs":1,"blob":2,"a$blob":3,"$":4,"":5}`:          `{"$blobs":1,"blob":2,"a$blob":3,"$":4,"":5}`,
		`{"x":["$blob","$$blob"]}`:                             `{"x":["$blob","$$blob"]}`,
		`{"$blob":"` + strings.Repeat("0", 64) + `","size":0}`: `{"$$blob":"` + strings.Repeat("0", 64) + `","size":0}`,
	} {
		if stored, _, _ := roundTrip(t, in, -1); stored != want {
			t.Errorf("%s became %s, wanted %s", in, stored, want)
		}
	}
}

func TestRefsPaths(t *testing.T) {
	long := strings.Repeat("x", 100)
	m := payloadsOf{}
	body := `{"a":[1,{"b/c~d":"` + long + `"},[["` + long + `"]]],"\u00e9":{"":"` + long + `"},"z":"` + long + `"}`
	stored, _, err := Externalise([]byte(body), Policy{100}, m.put)
	if err != nil {
		t.Fatal(err)
	}
	refs, err := Refs(stored)
	var paths []string
	for _, r := range refs {
		paths = append(paths, r.Path)
	}
	if d := cmp.Diff([]string{"/a/1/b~1c~0d", "/a/2/0/0", "/é/", "/z"}, paths); d != "" || err != nil {
		t.Error(err, d)
	}
}

func TestUnavailable(t *testing.T) {
	m := payloadsOf{}
	body := `{"a":"first payload","$blob":"b","c":["second payload","third payload!"]}`
	stored, refs, err := Externalise([]byte(body), Policy{8}, m.put)
	if err != nil {
		t.Fatal(err)
	}
	delete(m, refs[1].Sum)
	m[refs[2].Sum] = []byte("short")
	got, err := Resolve(stored, m.get)
	want := `{"a":"first payload","$blob":"b","c":[` + string(
		stored[refs[1].Offset:refs[1].end],
	) + "," + string(
		stored[refs[2].Offset:refs[2].end],
	) + `]}`
	if string(got) != want {
		t.Errorf("%s\nwanted %s", got, want)
	}
	var first *UnavailableError
	if !errors.As(err, &first) || first.Ref.Path != "/c/0" || !errors.Is(err, errGone) || !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	if _, _, err := Reexternalise(stored, Policy{0}, m.get, m.put); !errors.As(err, &first) {
		t.Error(err)
	}
	if _, _, err := Externalise([]byte(body), Policy{8}, func([]byte) (Sum, error) { return Sum{}, errGone }); !errors.Is(err, errGone) {
		t.Error(err)
	}
}

func TestMalformedReferences(t *testing.T) {
	m := payloadsOf{}
	sum, _ := m.put([]byte("text"))
	bin, _ := m.put([]byte{0xff, 0xfe})
	h := sum.String()
	for name, ref := range map[string]string{
		"no size":          `{"$blob":"` + h + `"}`,
		"negative":         `{"$blob":"` + h + `","size":-4}`,
		"fraction":         `{"$blob":"` + h + `","size":4.0}`,
		"leading zero":     `{"$blob":"` + h + `","size":04}`,
		"enormous":         `{"$blob":"` + h + `","size":99999999999999999999}`,
		"size a string":    `{"$blob":"` + h + `","size":"4"}`,
		"size twice":       `{"$blob":"` + h + `","size":4,"size":4}`,
		"size an object":   `{"$blob":"` + h + `","size":{"x":[1,"]"]}}`,
		"other size":       `{"$blob":"` + h + `","size":5}`,
		"name twice":       `{"$blob":"` + h + `","size":4,"$blob":"` + h + `"}`,
		"upper case":       `{"$blob":"` + strings.ToUpper(h) + `","size":4}`,
		"short":            `{"$blob":"` + h[2:] + `","size":4}`,
		"null":             `{"$blob":null,"size":4}`,
		"nested":           `{"$blob":{"$blob":"` + h + `","size":4},"size":4}`,
		"unknown encoding": `{"$blob":"` + h + `","size":4,"encoding":"hex"}`,
		"empty encoding":   `{"$blob":"` + h + `","size":4,"encoding":""}`,
		"unknown spelling": `{"$blob":"` + h + `","size":4,"spelling":"cobol"}`,
		"spelling order":   `{"$blob":"` + h + `","size":4,"spelling":"slash+ascii"}`,
		"empty spelling":   `{"$blob":"` + h + `","size":4,"spelling":""}`,
		"redundant word":   `{"$blob":"` + h + `","size":4,"spelling":"ascii+lines"}`,
		"word twice":       `{"$blob":"` + h + `","size":4,"spelling":"html+html"}`,
		"media type null":  `{"$blob":"` + h + `","size":4,"media_type":null}`,
		"media type 7":     `{"$blob":"` + h + `","size":4,"media_type":7}`,
		"empty media type": `{"$blob":"` + h + `","size":4,"media_type":""}`,
		"half a pair":      `{"$blob":"` + h + `","size":4,"media_type":"\ud83d"}`,
		"prefix of a half": `{"$blob":"` + h + `","size":4,"prefix":"\ud83d"}`,
		"empty prefix":     `{"$blob":"` + h + `","size":4,"prefix":""}`,
		"encoding null":    `{"$blob":"` + h + `","size":4,"encoding":null}`,
		"size exponent":    `{"$blob":"` + h + `","size":4e0}`,
		"prefix a number":  `{"$blob":"` + h + `","size":4,"prefix":4}`,
		"no text":          `{"$blob":"` + bin.String() + `","size":2}`,
	} {
		stored := `{"a":` + ref + `,"b":{"$blob":"` + h + `","size":4}}`
		got, err := Resolve([]byte(stored), m.get)
		var u *UnavailableError
		if want := `{"a":` + ref + `,"b":"text"}`; string(got) != want || !errors.As(err, &u) || u.Ref.Path != "/a" {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), strings.Repeat("0", 64)) {
			t.Errorf("%s: a name made of nothing: %v", name, err)
		}
		if refs, err := Refs([]byte(stored)); err != nil || len(refs) != 2 {
			t.Errorf("%s: %v, %v", name, refs, err)
		}
	}
	for name, ref := range map[string]string{
		"escaped name":   `{"\u0024blob":"` + h + `","size":4}`,
		"unknown member": `{"$blob":"` + h + `","new":[{"$blob":1}],"size":4,"newer":true}`,
		"white space":    "{ \"$blob\" : \"" + h + "\" ,\n\"size\" :\t4 }",
	} {
		if got, err := Resolve([]byte(`[`+ref+`,1]`), m.get); string(got) != `["text",1]` || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestNotReferences: what Externalise never writes is left as somebody wrote it.
func TestNotReferences(t *testing.T) {
	for _, stored := range []string{
		`{"\u0024$blob":1}`, `{"a":1,"$blob":"` + SumOf(nil).String() + `","size":0}`, `["$blob"]`, `{"x":"$$blob"}`, `{"$$blobs":1}`,
	} {
		if got, err := Resolve([]byte(stored), payloadsOf{SumOf(nil): nil}.get); string(got) != stored || err != nil {
			t.Errorf("%s became %s, %v", stored, got, err)
		}
		if refs, err := Refs([]byte(stored)); len(refs) > 0 || err != nil {
			t.Errorf("%s: %v, %v", stored, refs, err)
		}
	}
}

func TestMalformedMessages(t *testing.T) {
	for _, b := range []string{`{"a`, `{"$blob":`, `{"$blob"`, `{"$blob":"x"`, `{"$blob":{`, `[}`, `}`, `{]`, `{"$blob":1]`,
		`{"a":"x" "$blob"`, `{"$blob":"x""y"}`, `[[[`, `{["x"]}`, `{{"$blob":"x","size":1}}`, `{"a":1,["$blob"]}`} {
		_, _, xerr := Externalise([]byte(b), Policy{0}, payloadsOf{}.put)
		_, rerr := Resolve([]byte(b), payloadsOf{}.get)
		_, lerr := Refs([]byte(b))
		for _, err := range []error{rerr, lerr} {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", b, err)
			}
		}
		_ = xerr // it may not notice; it must not panic
	}
}

func TestDeepNesting(t *testing.T) {
	const depth = 9000
	body := strings.Repeat(`{"$blob":[`, depth/2) + `"` + strings.Repeat("x", 200) + `"` + strings.Repeat(`]}`, depth/2)
	_, refs, _ := roundTrip(t, body, 100)
	if len(refs) != 1 {
		t.Error(refs)
	}
	// Candidates in every object of a deep message: linear, or this does not end.
	std := base64.StdEncoding.EncodeToString(noise(300))
	var b strings.Builder
	for range depth {
		b.WriteString(`{"data":"` + std + `","format":"x","a":`)
	}
	b.WriteString(`1` + strings.Repeat(`}`, depth))
	if _, refs, _ := roundTrip(t, b.String(), -1); len(refs) != depth {
		t.Error(len(refs))
	}
	b.Reset()
	b.WriteString(`{"format":"x","p":[`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `{"source":{"data":"%s%04d"}},`, strings.Repeat("A", 252), i%10000)
	}
	b.WriteString(`1]}`)
	if _, refs, _ := roundTrip(t, b.String(), -1); len(refs) != 0 {
		t.Error(len(refs))
	}
}
