package redact

import (
	"math"
	"strings"
	"unicode/utf8"
)

// search is one search in a text.
type search struct {
	text  string
	kinds map[Kind]bool
	found []Finding
}

func (s *search) add(k Kind, start, end int, rule string) {
	s.found = append(s.found, Finding{k, start, end, rule})
}

// services finds the keys and tokens of services.
func (s *search) services() {
	var failed [len(rules)]int // until where a rule has no match: no byte is looked at twice for one
	for i := 0; i+1 < len(s.text); i++ {
		if !firsts[s.text[i]] || !pairs[int(s.text[i])<<8|int(s.text[i+1])] {
			continue
		}
		for _, p := range byPair[[2]byte{s.text[i], s.text[i+1]}] {
			if !s.kinds[p.kind] || i < failed[p.number] || !strings.HasPrefix(s.text[i:], p.prefix) || !begins(s.text, i) {
				continue
			}
			start := i + len(p.prefix)
			end := start + run(s.text[start:], p.body)
			n := end - start
			if n < p.min || p.max > 0 && n > p.max || p.digits && !hasDigit(s.text[start:end]) {
				failed[p.number] = end
				continue
			}
			for p.body['.'] && s.text[end-1] == '.' { // of a sentence
				end--
			}
			if !p.after {
				start = i
			}
			s.add(p.kind, start, end, p.name)
			i = end - 1
			break
		}
	}
}

// run is how many bytes at the beginning of a text are in a class.
func run[T string | []byte](text T, c *class) int {
	for i := range len(text) {
		if !c[text[i]] {
			return i
		}
	}
	return len(text)
}

// begins reports whether a word can begin at a position: no letter is before it, but for those of an escape of JSON (\n,
// \u003c), of a URL (%3D) and of a terminal (ESC [ 31 m).
func begins(text string, at int) bool {
	if at == 0 || !names[text[at-1]] {
		return true
	}
	last := text[at-1]
	switch {
	case at >= 2 && text[at-2] == '\\' && strings.IndexByte("nrtbfv0", last) >= 0:
		return true
	case at >= 6 && text[at-6] == '\\' && text[at-5] == 'u' && isHex(text[at-4:at]):
		return true
	case at >= 3 && text[at-3] == '%' && isHex(text[at-2:at]):
		return true
	case last == 'm':
		const longest = 20
		for i := at - 2; i >= 0 && i > at-longest; i-- {
			if text[i] == '[' {
				return true
			}
			if (text[i] < '0' || text[i] > '9') && text[i] != ';' {
				return false
			}
		}
	}
	return false
}

var anyHex = classOf("0-9", "a-f", "A-F")

func isHex(text string) bool { return run(text, anyHex) == len(text) }

var digit = classOf("0-9")

func hasDigit(text string) bool {
	for i := range len(text) {
		if digit[text[i]] {
			return true
		}
	}
	return false
}

// privateKeys finds private keys in PEM, also those whose end is missing. The rule of gitleaks is private-key, and the
// form that of RFC 7468.
func (s *search) privateKeys() {
	const (
		begin, end = "-----BEGIN ", "-----END "
		longest    = 64 << 10
		label      = 80
	)
	for at := 0; ; {
		i := strings.Index(s.text[at:], begin)
		if i < 0 {
			return
		}
		start := at + i
		at = start + len(begin)
		head := s.text[at:min(at+label, len(s.text))]
		stop := strings.Index(head, "-----")
		if stop < 0 || !strings.Contains(head[:stop], "PRIVATE KEY") {
			continue
		}
		at += stop + len("-----")
		rest := s.text[at:min(at+longest, len(s.text))]
		if next := strings.Index(rest, begin); next >= 0 {
			rest = rest[:next]
		}
		if n := strings.Index(rest, end); n >= 0 {
			at += n + len(end)
			if n = strings.Index(s.text[at:min(at+label, len(s.text))], "-----"); n >= 0 {
				at += n + len("-----")
			}
		} else {
			at += run(rest, pemBody)
		}
		s.add(Key, start, at, "private-key")
	}
}

var pemBody = classOf("A-Z", "a-z", "0-9", "+/=\\ \t\r\n", "-", ":,")

// webTokens finds tokens in the form of RFC 7519: two parts of JSON, which begin with ey in base64, and a signature. The
// rule of gitleaks is jwt.
func (s *search) webTokens() {
	const shortest = 10
	for at := 0; ; {
		i := strings.Index(s.text[at:], ".ey")
		if i < 0 {
			return
		}
		dot := at + i
		at = dot + 1
		start := dot
		for start > 0 && dashed[s.text[start-1]] && dot-start < maxValue {
			start--
		}
		if e := strings.Index(s.text[start:dot], "ey"); e >= 0 && begins(s.text, start+e) {
			start += e
		} else if e < 0 || start > 0 && names[s.text[start-1]] {
			continue
		} else {
			start += e // after letters of an escape, for example
		}
		end := at + run(s.text[at:], dotted)
		for s.text[end-1] == '.' {
			end--
		}
		if dot-start >= shortest && end-dot >= shortest {
			s.add(Token, start, end, "jwt")
		}
		at = end
	}
}

// maxValue bounds the length of a value that is looked at, in bytes.
const maxValue = 512

// addresses finds passwords and tokens in URLs: scheme://name:password@host (RFC 3986, 3.2.1).
func (s *search) addresses() {
	for at := 0; ; {
		i := strings.Index(s.text[at:], "://")
		if i < 0 {
			return
		}
		at += i + len("://")
		const longest = 512
		rest := s.text[at:min(at+longest, len(s.text))]
		if n := strings.IndexAny(rest, " \t\r\n/\"'`<>\\?#"); n >= 0 {
			rest = rest[:n]
		}
		host := strings.LastIndexByte(rest, '@')
		if host < 0 {
			continue
		}
		colon := strings.IndexByte(rest[:host], ':')
		secret := rest[colon+1 : host]
		switch {
		case secret == "" || strings.ContainsAny(secret[:1], "$<{*["):
		case colon >= 0 && s.kinds[Key]:
			s.add(Key, at+colon+1, at+host, "url-password")
		case colon < 0 && s.kinds[Token] && len(secret) >= 20 && hasDigit(secret):
			s.add(Token, at, at+host, "url-token")
		}
	}
}

// entropy is the entropy of the bytes of a text, in bits for each (Shannon).
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	bits, n := 0.0, float64(len(text))
	for _, c := range counts {
		if c > 0 {
			p := float64(c) / n
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// lastRune is the rune before a position.
func lastRune(text string, at int) (rune, int) { return utf8.DecodeLastRuneInString(text[:at]) }
