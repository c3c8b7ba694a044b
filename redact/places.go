package redact

import (
	"net/netip"
	"strings"
	"unicode"
)

// mails finds e-mail addresses (RFC 5322, 3.4.1, without quoted names). An address with git@ is one of a service.
func (s *search) mails() {
	for at := 0; ; {
		i := strings.IndexByte(s.text[at:], '@')
		if i < 0 {
			return
		}
		sign := at + i
		at = sign + 1
		start, end := sign, at+run(s.text[at:min(at+maxHost, len(s.text))], domain)
		for start > 0 && sign-start < maxName {
			r, n := lastRune(s.text, start)
			if !inMail(r) {
				break
			}
			start -= n
		}
		for start < sign && s.text[start] == '.' {
			start++
		}
		for end > at && (s.text[end-1] == '.' || s.text[end-1] == '-') {
			end--
		}
		if start == sign || !isDomain(s.text[at:end]) || s.text[start:sign] == "git" {
			continue
		}
		s.add(Mail, start, end, "mail")
		at = end
	}
}

const maxHost = 253 // bytes; RFC 1035

var domain = classOf("A-Z", "a-z", "0-9", "-", ".")

func inMail(r rune) bool {
	if r < 0x80 {
		return letters[byte(r)] || strings.ContainsRune("._%+-", r)
	}
	return unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek)
}

// isDomain reports whether a name ends in a domain of letters. The name of a file such as icon@2x.png has none.
func isDomain(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 || len(name)-dot-1 < 2 {
		return false
	}
	for _, c := range []byte(name[dot+1:]) {
		if !letters[c] || digit[c] {
			return false
		}
	}
	return !digit[name[0]] || len(name) < 3 || name[1] != 'x' || name[2] != '.'
}

// homePlaces are where home folders are. Claude Code writes them with dashes in names of folders.
var homePlaces = []string{
	"/home/", "/Users/", "/var/home/", "/mnt/c/Users/", "/mnt/d/Users/", "/c/Users/", `\/home\/`, `\/Users\/`, "%2Fhome%2F", "%2FUsers%2F",
	"-home-", "-Users-", ":/Users/", `:\Users\`, `:\\Users\\`, `:\\\\Users\\\\`,
}

// homes finds home folders, up to the name of the person.
func (s *search) homes() {
	for _, place := range homePlaces {
		for at := 0; ; {
			i := strings.Index(s.text[at:], place)
			if i < 0 {
				break
			}
			start := at + i
			at = start + len(place)
			dashes, windows := place[0] == '-', place[0] == ':'
			switch {
			case windows:
				if start--; start < 0 || !letters[s.text[start]] || digit[s.text[start]] {
					continue
				}
			case !begins(s.text, start), start > 0 && strings.IndexByte(".)]}", s.text[start-1]) >= 0:
				continue
			case dashes && start > 0 && strings.IndexByte("/\\\"'` \n:", s.text[start-1]) < 0:
				continue
			}
			names := inHome
			if dashes {
				names = inDashedHome
			}
			end := at + run(s.text[at:min(at+maxName, len(s.text))], names)
			if windows {
				end += secondName(s.text[end:])
			}
			for end > at && s.text[end-1] == '.' {
				end--
			}
			if end > at && run(s.text[at:end], unnamed) < end-at {
				s.add(Path, start, end, "home")
				at = end
			}
		}
	}
}

var (
	inHome       = not(" \t\r\n\"'`/\\:;,<>|()[]{}=&%*?$!#\x1b")
	inDashedHome = classOf("A-Z", "a-z", "0-9", "_.")
	unnamed      = classOf("._~-")
)

func not(bytes string) *class {
	var c class
	for b := range c {
		c[b] = b > ' ' && strings.IndexByte(bytes, byte(b)) < 0
	}
	return &c
}

// secondName is the rest of a name of a Windows user that has spaces, as in C:\Users\Ada Lovelace\.
func secondName(rest string) int {
	const longest = 40
	n := run(rest[:min(longest, len(rest))], inLongName)
	if n < len(rest) && n < longest && n > 0 && rest[n] == '\\' && rest[0] == ' ' {
		return n
	}
	return 0
}

var inLongName = classOf("A-Z", "a-z", "0-9", " .'", "-")

// hostEnds are ends of private host names: RFC 6762, appendix G, RFC 8375, and the name that ICANN keeps free, internal.
var hostEnds = []string{".local", ".internal", ".corp", ".lan", ".intranet", ".private", ".home.arpa", ".localdomain"}

// hosts finds private host names.
func (s *search) hosts() {
	for _, last := range hostEnds {
		for at := 0; ; {
			i := strings.Index(s.text[at:], last)
			if i < 0 {
				break
			}
			start := at + i
			end := start + len(last)
			at = end
			if rest := s.text[end:]; rest != "" && (dashed[rest[0]] || rest[0] == '(' || rest[0] == '.' && len(rest) > 1 && names[rest[1]]) {
				continue
			}
			dot := start
			for start > 0 && dot-start < maxHost && domain[s.text[start-1]] {
				start--
			}
			if isHost(s.text[start:dot]) && (start == 0 || s.text[start-1] != '_') {
				s.add(Host, start, end, "private-host")
			}
		}
	}
}

// isHost reports whether what stands before the last part of a host name is one, and not code or the name of a file.
func isHost(name string) bool {
	if name == "" || name[0] == '.' || name[0] == '-' {
		return false
	}
	first, _, _ := strings.Cut(name, ".")
	switch first {
	case "this", "self", "env", "settings", "threading", "window", "com", "org", "net", "io", "config", "cls":
		return false
	}
	return true
}

// ipBegins are beginnings of private addresses: RFC 1918, RFC 3927, RFC 6598, RFC 4193 and RFC 4291.
var ipBegins = []string{"10.", "192.168.", "172.", "169.254.", "100.", "fe80:", "fd", "fc"}

var shared = netip.MustParsePrefix("100.64.0.0/10")

// privateIPs finds addresses of private networks.
func (s *search) privateIPs() {
	for _, begin := range ipBegins {
		digits := ipv4
		if begin[0] == 'f' {
			digits = ipv6
		}
		for at := 0; ; {
			i := strings.Index(s.text[at:], begin)
			if i < 0 {
				break
			}
			start := at + i
			at = start + len(begin)
			const longest = 40
			end := start + run(s.text[start:min(start+longest, len(s.text))], digits)
			for end > at && (s.text[end-1] == '.' || s.text[end-1] == ':') {
				end--
			}
			inside := start > 0 && (s.text[start-1] == '.' || s.text[start-1] == '-') || end < len(s.text) && dashed[s.text[end]]
			if inside || !begins(s.text, start) {
				continue
			}
			text := s.text[start:end]
			if digits == ipv4 && strings.Count(text, ".") != 3 {
				continue
			}
			addr, err := netip.ParseAddr(text)
			if err == nil && (addr.IsPrivate() || addr.IsLinkLocalUnicast() || shared.Contains(addr)) {
				s.add(Host, start, end, "private-ip")
				at = end
			}
		}
	}
}

var (
	ipv4 = classOf("0-9", ".")
	ipv6 = classOf("0-9", "a-f", "A-F", ":")
)

const (
	// minBase64 is the length of the shortest base64 that is replaced, and minBase64Line that of a line, in bytes.
	minBase64     = 120
	minBase64Line = 60
	// surelyBase64 is a length from which a run is base64 whatever its entropy; a path or a name is shorter.
	surelyBase64  = 1000
	base64Entropy = 4.6
)

var inBase64 = classOf("A-Z", "a-z", "0-9", "+/_=", "-")

// base64 finds long base64, also on several lines.
func (s *search) base64() {
	for i := 0; i < len(s.text); {
		n := run(s.text[i:], inBase64)
		if n < minBase64Line {
			i += n + 1
			continue
		}
		start, end := i, i+n
		for {
			gap := lineBreak(s.text[end:])
			next := run(s.text[end+gap:], inBase64)
			if gap == 0 || next < minBase64Line {
				if gap > 0 && next > 0 && end-start > n && next <= n { // the last line is shorter
					end += gap + next
				}
				break
			}
			end += gap + next
		}
		if isBase64(s.text[start:end]) {
			s.add(Base64, start, end, "base64")
		}
		i = end
	}
}

// lineBreak is the length of a line break at the beginning of a text, also of one in JSON.
func lineBreak(text string) int {
	for _, b := range []string{"\n", "\r\n", `\n`, `\r\n`, `\\n`} {
		if strings.HasPrefix(text, b) {
			return len(b)
		}
	}
	return 0
}

// isBase64 reports whether a run is base64 of some length. A hash in hexadecimal, a rule of dashes and a path are not.
func isBase64(text string) bool {
	if len(text) < minBase64 {
		return false
	}
	var capital, small, number bool
	for _, c := range []byte(text) {
		capital = capital || c >= 'A' && c <= 'Z'
		small = small || c >= 'a' && c <= 'z'
		number = number || digit[c]
	}
	if !capital || !small || !number {
		return false
	}
	return len(text) >= surelyBase64 || entropy(text) >= base64Entropy
}
