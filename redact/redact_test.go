package redact

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// made is a made-up run of a length in which every byte is in a class. It is put together here, so that no file has a
// secret that a scanner would find.
func made(c *class, n int) string {
	var all []byte
	for b := range 256 {
		if c[b] && b != '.' && b != '=' && b != '-' && b != '/' {
			all = append(all, byte(b))
		}
	}
	var s strings.Builder
	for i, at := 0, uint32(3); i < n; i++ {
		at = at*1664525 + 1013904223
		s.WriteByte(all[int(at>>16)%len(all)])
	}
	return s.String()
}

// TestServices: each rule finds an example, alone, in a sentence and in JSON in JSON, and nothing shorter.
func TestServices(t *testing.T) {
	for _, rule := range rules {
		for _, prefix := range rule.prefixes {
			body := made(rule.body, rule.min)
			if rule.digits && !hasDigit(body) {
				body = "7" + body[1:]
			}
			example, secret := prefix+body, prefix+body
			if rule.after {
				secret = body
			}
			for _, around := range [][2]string{
				{"", ""}, {"Use ", " for it."}, {`"`, `"`}, {"(", ")"}, {"=", "\n"},
				{`{\"a\":\"\n`, `\"}`}, {`\u003c`, `\u003e`}, {"\x1b[32m", "\x1b[0m"}, {"%3D", "&"},
			} {
				text := around[0] + example + around[1]
				found := Find(text)
				ok := false
				for _, f := range found {
					ok = ok || f.Kind == rule.kind && strings.HasSuffix(text[f.Start:f.End], secret)
				}
				if !ok {
					t.Errorf("%s: nothing in %q: %v", rule.name, text, found)
				}
			}
			short := prefix + body[:rule.min-1]
			if strings.HasPrefix(prefix, "--") {
				continue // 7 bytes
			}
			for _, f := range Find("a " + short + " b") {
				if f.Rule == rule.name {
					t.Errorf("%s: found %q, which is too short", rule.name, short)
				}
			}
			if f := Find("x" + example); !rule.after && len(f) > 0 && f[0].Rule == rule.name {
				t.Errorf("%s: found within a word", rule.name)
			}
		}
	}
}

func redactor(t *testing.T, o Options) *Redactor {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestText: what is replaced in texts, and what is not.
func TestText(t *testing.T) {
	r := redactor(t, Options{Kinds: Kinds, Words: []string{"Heron", "Heron Lake", "größe", "ada/lake"}})
	web := "ey" + made(letters, 20) + ".ey" + made(letters, 30) + "." + made(dashed, 20)
	dashes := "-----"
	pem := dashes + "BEGIN RSA PRIVATE KEY" + dashes + "\n" + made(letters, 64) + "\n" + dashes + "END RSA PRIVATE KEY" + dashes
	long := made(classOf("A-Z", "a-z", "0-9", "+"), 140)
	secret := "x9F" + "kq27Lm" + "Zt"
	for _, test := range []struct{ text, want string }{
		{"nothing here", "nothing here"},
		{"", ""},
		// tokens
		{"a " + web + " b", "a [token] b"},
		{"see a.eye and b.ey", "see a.eye and b.ey"},
		{"Authorization: Bearer " + made(letters, 24), "Authorization: Bearer [key]"},
		{"-H 'authorization: Basic " + made(letters, 24) + "'", "-H 'authorization: Basic [key]'"},
		{"the bearer of good news", "the bearer of good news"},
		// private keys
		{"k:\n" + pem + "\nend", "k:\n[key]\nend"},
		{pem[:70] + "\n\x00 cut", "[key]\x00 cut"},
		{dashes + "BEGIN CERTIFICATE" + dashes, dashes + "BEGIN CERTIFICATE" + dashes},
		// assignments
		{`password = "` + secret + `"`, `password = "[key]"`},
		{"DB_PASSWORD=" + secret + "\nX=1", "DB_PASSWORD=[key]\nX=1"},
		{`client_secret: '` + secret + `',`, `client_secret: '[key]',`},
		{`{"apiKey":"` + secret + `"}`, `{"apiKey":"[key]"}`},
		{`{\"apiKey\": \"` + secret + `\"}`, `{\"apiKey\": \"[key]\"}`},
		{`token := "` + secret + `"`, `token := "[key]"`},
		{`X-Api-Key: ` + secret, `X-Api-Key: [key]`},
		{`password = "a\"b` + secret + `"`, `password = "[key]"`},
		{`password = os.Getenv("DB_PASSWORD")`, `password = os.Getenv("DB_PASSWORD")`},
		{`token: string, secret: number`, `token: string, secret: number`},
		{`"password": "The password is wrong"`, `"password": "The password is wrong"`},
		{`password: ${DB_PASSWORD}`, `password: ${DB_PASSWORD}`},
		{`password = "<your-password>"`, `password = "<your-password>"`},
		{`password_file = "/run/secrets/db"`, `password_file = "/run/secrets/db"`},
		{`password = "/run/secrets/db"`, `password = "/run/secrets/db"`},
		{`token = response.data1.token`, `token = response.data1.token`},
		{`max_tokens: 4096, tokens=123456789`, `max_tokens: 4096, tokens=123456789`},
		{`password = "aaaaaaaaaaaa"`, `password = "aaaaaaaaaaaa"`},
		// URLs
		{"postgres://app:" + secret + "@db.example/x", "postgres://app:[key]/x"},
		{"https://app:" + secret + "@localhost:5432", "https://app:[key]@localhost:5432"},
		{"https://" + made(letters, 24) + "@github.com/o/r", "https://[token]/o/r"},
		{"https://app:$PASSWORD@db", "https://app:$PASSWORD@db"},
		{"http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a"},
		// mail
		{"Write to ada.l+x@mail.example.org.", "Write to [mail]."},
		{"<jürgen@firma.example>", "<[mail]>"},
		{`a\nbob@firma.example`, `a[mail]`},
		{"git@github.com:o/r icon@2x.png lodash@4.17.21 @app.route a@b", "git@github.com:o/r icon@2x.png lodash@4.17.21 @app.route a@b"},
		// home folders
		{"in /home/ada/notes.md", "in [path]/notes.md"},
		{"file:///Users/ada/x", "file://[path]/x"},
		{`C:\Users\Ada\x and D:/Users/ada/y`, `[path]\x and [path]/y`},
		{`C:\Users\Ada Lovelace\x`, `[path]\x`},
		{`\"C:\\Users\\ada\\x\"`, `\"[path]\\x\"`},
		{`\/home\/ada\/x`, `[path]\/x`},
		{"/mnt/c/Users/ada/x", "[path]/x"},
		{"~/.claude/projects/-home-ada-work", "~/.claude/projects/[path]-work"},
		{`a\n/home/ada`, `a\n[path]`},
		{"example.com/home/about /home/$USER /home/* /home/", "example.com/home/about /home/$USER /home/* /home/"},
		{"in /home/ada.", "in [path]."},
		// hosts
		{"ssh build-7.corp, nas.fritz.lan:22 db.internal/x pi.local.", "ssh [host], [host]:22 [host]/x [host]."},
		{"10.1.2.3 192.168.0.17:80 172.16.9.1, 100.64.1.1 fd00::12 fe80::1", "[host] [host]:80 [host], [host] [host] [host]"},
		{"172.32.0.1 8.8.8.8 1.10.1.2.3 v10.1.2 10.1.2.3.4 fdisk", "172.32.0.1 8.8.8.8 1.10.1.2.3 v10.1.2 10.1.2.3.4 fdisk"},
		{".env.local settings.local.json this.internal threading.local()", ".env.local settings.local.json this.internal threading.local()"},
		// base64
		{"data:image/png;base64," + long + "==", "data:image/png;base64,[base64]"},
		{long[:76] + "\n" + long[:76] + "\n" + long[:20] + "=\nend", "[base64]\nend"},
		{long[:100], long[:100]},
		{strings.Repeat("0123456789abcdef", 8), strings.Repeat("0123456789abcdef", 8)},
		{strings.Repeat("-", 300) + strings.Repeat("=", 300), strings.Repeat("-", 300) + strings.Repeat("=", 300)},
		{strings.Repeat("Src1/a/b/", 15), strings.Repeat("Src1/a/b/", 15)},
		// words
		{"in /home/ada/lake, x", "in [path], x"},
		{"HERON, heron lake, Größe, herons", "[word], [word], [word], [word]s"},
	} {
		got := r.Text(test.text).String()
		if got != test.want {
			t.Errorf("%q\n got %q\nwant %q", test.text, got, test.want)
		}
	}
}

// TestKinds: only the kinds that were asked for are replaced, and each by its name.
func TestKinds(t *testing.T) {
	text := "/home/ada ada@mail.example 10.0.0.1"
	for _, test := range []struct {
		kinds []Kind
		want  string
	}{
		{nil, text}, {[]Kind{Path}, "[path] ada@mail.example 10.0.0.1"}, {[]Kind{Mail}, "/home/ada [mail] 10.0.0.1"},
		{[]Kind{Host, Path}, "[path] ada@mail.example [host]"},
	} {
		if got := redactor(t, Options{Kinds: test.kinds}).Text(text).String(); got != test.want {
			t.Errorf("%v: %q", test.kinds, got)
		}
	}
	var none *Redactor
	if got := none.Text(text).String(); got != text || none.Replaces(Path) || none.JSON([]byte(`"/home/ada"`)).String() != `"/home/ada"` {
		t.Errorf("a nil Redactor: %q", got)
	}
}

// TestOptions: options that cannot be used are errors.
func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Kinds: []Kind{"keys"}}, {Words: []string{" "}}, {Words: []string{strings.Repeat("a", MaxWord+1)}}, {Words: make([]string, MaxWords+1)},
		{Words: []string{"\xff"}},
	} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestJSON: strings of JSON are replaced, and every other byte stays.
func TestJSON(t *testing.T) {
	secret := "x9F" + "kq27Lm" + "Zt"
	r := redactor(t, Options{Kinds: Kinds, Words: []string{"4711", "heron"}})
	for _, test := range []struct{ value, want string }{
		{`{"a":"/home/ada/x", "n": 0.000003 ,"é":"\u00e9\ud800"}`, `{"a":"[path]/x", "n": 0.000003 ,"é":"\u00e9\ud800"}`},
		{`{"a":"x\n\/home\/ada\n\ud83d\ude00 ada@mail.example\t\u00e9"}`, `{"a":"x\n[path]\n\ud83d\ude00 [mail]\t\u00e9"}`},
		{`{"/home/ada/x":{"y":1}}`, `{"[path]/x":{"y":1}}`},
		{`{"password":"` + secret + `","x":"` + secret + `"}`, `{"password":"[key]","x":"` + secret + `"}`},
		{`{"password":{"x":"` + secret + `"}}`, `{"password":{"x":"` + secret + `"}}`},
		{`{"password":"It is wrong, says Bob7"}`, `{"password":"It is wrong, says Bob7"}`},
		{`{"arguments":"{\"password\":\"` + secret + `\",\"p\":\"C:\\\\Users\\\\ada\\\\x\\nada@mail.example\"}"}`,
			`{"arguments":"{\"password\":\"[key]\",\"p\":\"[path]\\\\x[mail]\"}"}`},
		{`[4711, 14711.5, 12]`, `["[word]", "[word]", 12]`},
		{`"\u0048eron"`, `"[word]"`},
		{`/home/ada is no JSON`, `[path] is no JSON`},
	} {
		got := r.JSON([]byte(test.value)).String()
		if got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.value, got, test.want)
		}
		if json.Valid([]byte(test.value)) && !json.Valid([]byte(got)) {
			t.Errorf("%s is no JSON", got)
		}
	}
}

// TestFound: what is replaced is reported once, and not by a quiet Redactor.
func TestFound(t *testing.T) {
	var got []string
	r := redactor(t, Options{Kinds: Kinds, Words: []string{"12"}, Found: func(text string, f Finding) {
		got = append(got, string(f.Kind)+" "+text[f.Start:f.End])
	}})
	r.JSON([]byte(`{"a":"\u002fhome/ada","b":120}`))
	r.Quiet().Text("/home/bob")
	if want := "path /home/ada|word 120"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

// FuzzFind: findings are in order and inside the text; JSON stays JSON, also JSON in JSON; a second run finds nothing new
// of the kinds that a replacement could be part of.
func FuzzFind(f *testing.F) {
	f.Add(`{"a":"\n/home/ada\\","b":["x\ud800@y.org",1e9]}`, "a")
	f.Add("-----BEGIN PRIVATE KEY-----\\", "b")
	f.Add(`password=\"abcdefg12\\\"`, "c")
	f.Add("\\bob@mail.example\\", "")
	f.Fuzz(func(t *testing.T, text, word string) {
		o := Options{Kinds: Kinds}
		if word != "" {
			o.Words = []string{word}
		}
		r, err := New(o)
		if err != nil {
			r = everything
		}
		at := 0
		for _, found := range r.Find(text) {
			if found.Start < at || found.End <= found.Start || found.End > len(text) {
				t.Fatalf("%v after %d in %q", found, at, text)
			}
			at = found.End
		}
		r.Text(text)
		if got := r.JSON([]byte(text)).String(); json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Fatalf("%q became %q", text, got)
		}
		outer, _ := json.Marshal(text)
		var inner string
		if err := json.Unmarshal([]byte(r.JSON(outer).String()), &inner); err != nil {
			t.Fatal(err)
		}
		if err == nil && len(o.Words) == 0 && json.Valid([]byte(text)) && !json.Valid([]byte(inner)) {
			t.Fatalf("the JSON %q in a string became %q", text, inner)
		}
	})
}

// slowPieces are texts that are slow to search if a search looks at a part of a text again and again.
var slowPieces = map[string]string{
	"prose": "The heron stands in the lake: it waits, and password = none. See /usr/lib/x.go:12 ", "sk": "sk-", "assign": "password=",
	"begin": "-----BEGIN PRIVATE KEY-----", "ey": ".ey", "at": "a@", "lan": ".lan", "fd": "fd", "slash": `\"`, "home": "/home/", "x": "x",
}

// TestSlow would take hours if time grew with the square of a length.
func TestSlow(*testing.T) {
	for _, piece := range slowPieces {
		text := strings.Repeat(piece, 4<<20/len(piece))
		Find(text)
	}
}

func BenchmarkFind(b *testing.B) {
	for name, piece := range slowPieces {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(piece, 1<<20/len(piece))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Find(text)
			}
		})
	}
}
