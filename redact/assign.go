package redact

import (
	"slices"
	"strings"
)

// secretNames are ends of the names of values that are secrets, without the marks between words. The rule of gitleaks is
// generic-api-key.
var secretNames = []string{
	"password", "passwd", "pwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey",
	"authkey", "accountkey", "signingkey", "encryptionkey", "masterkey", "sharedkey", "credential", "credentials", "authorization",
	"secretkeybase", "dbpass",
}

// isSecretName reports whether a value with a name is a secret.
func isSecretName(name string) bool {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	if name == "" || !ofNames[name[len(name)-1]] {
		return false
	}
	name = strings.ToLower(name)
	if name == "pass" || strings.HasSuffix(name, "_pass") || strings.HasSuffix(name, "-pass") {
		return true
	}
	name = withoutMarks.Replace(name)
	return slices.ContainsFunc(secretNames, func(end string) bool { return strings.HasSuffix(name, end) })
}

var (
	withoutMarks = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")
	ofNames      = classOf("delntysDELNTYS") // their last letters
)

const (
	// maxName bounds the name of a value, and maxBetween what is between it and the value, in bytes.
	maxName    = 64
	maxBetween = 12
	// minSecret is the length of the shortest secret, in bytes, and minEntropy its entropy, in bits for each byte: that of
	// eight bytes that are all different.
	minSecret  = 8
	minEntropy = 2.9
)

// assignments finds values of names such as password, in code, configuration, JSON and headers.
func (s *search) assignments() {
	for i := 0; i < len(s.text); i++ {
		if c := s.text[i]; c != '=' && c != ':' {
			continue
		}
		if !isSecretName(s.nameBefore(i)) {
			continue
		}
		start, end, ok := s.valueAfter(i + 1)
		switch {
		case ok:
			s.add(Key, start, end, "generic-api-key")
			i = end - 1
		case end > start && !hasDigit(s.text[start:end]):
			i = end - 1 // no value inside has one either: no byte is looked at twice
		}
	}
}

// nameBefore is the name before a sign.
func (s *search) nameBefore(at int) string {
	end := at
	for end > 0 && at-end < maxBetween && strings.IndexByte(" \t\"'`\\:", s.text[end-1]) >= 0 {
		end--
	}
	start := end
	for start > 0 && end-start < maxName && dotted[s.text[start-1]] {
		start--
	}
	return s.text[start:end]
}

// valueAfter is where the value after a sign is, and whether it is a secret. A value in quotes that is none is nowhere.
func (s *search) valueAfter(at int) (start, end int, ok bool) {
	t := s.text
	start = at
	for start < len(t) && start-at < maxBetween && strings.IndexByte(" \t=>:", t[start]) >= 0 {
		start++
	}
	slashes := run(t[start:min(start+maxBetween, len(t))], backslash)
	quote := byte(0)
	if q := start + slashes; q < len(t) && strings.IndexByte("\"'`", t[q]) >= 0 {
		quote, start = t[q], q+1
	}
	for _, scheme := range []string{"bearer ", "basic ", "token ", "apikey "} {
		if len(t)-start > len(scheme) && strings.EqualFold(t[start:start+len(scheme)], scheme) {
			start += len(scheme)
			break
		}
	}
	end = start
	for end < len(t) && end-start < maxValue && !endsValue(t, start, end, quote, slashes) {
		end++
	}
	if quote != 0 && (end == len(t) || t[end] != quote && t[end] != '\\') {
		if end-start < maxValue {
			return 0, 0, false // the value has white space: it is a sentence
		}
	}
	if !isSecret(t[start:end], quote != 0) {
		if quote != 0 {
			return 0, 0, false
		}
		return start, end, false
	}
	for end < len(t) && !endsValue(t, start, end, quote, slashes) {
		end++
	}
	return start, end, true
}

var backslash = classOf("\\")

// endsValue reports whether a value ends at a position: at its quote, which has as many backslashes before it as the
// first one, or without quotes at a sign.
func endsValue(t string, start, at int, quote byte, slashes int) bool {
	c := t[at]
	if c <= ' ' {
		return true
	}
	if quote == 0 {
		return strings.IndexByte("\"'`,;)]}<>&|\\", c) >= 0
	}
	if c == quote {
		return slashes > 0 || beforeEscape(t, at) == at
	}
	if c != '\\' || slashes == 0 {
		return false
	}
	n := run(t[at:min(at+2*maxBetween, len(t))], backslash)
	return n <= slashes && at+n < len(t) && t[at+n] == quote && (at == start || t[at-1] != '\\')
}

// isSecret reports whether a value looks like a secret, and not like code, a path or a placeholder.
func isSecret(value string, quoted bool) bool {
	if !quoted && (!hasDigit(value) || run(value, digit) == len(value)) {
		return false
	}
	if len(value) < minSecret || strings.ContainsAny(value[:1], "$<{*[%(&") || isWord(value) || entropy(value) < minEntropy {
		return false
	}
	if strings.ContainsAny(value, "({") && !hasDigit(value) {
		return false
	}
	return quoted || !strings.Contains(value, "(") && !isChain(value)
}

// isWord reports whether a value is a path or a name in small letters, such as /run/secrets/db or access_token.
func isWord(value string) bool {
	return strings.ContainsAny(value, "/_.-") && run(value, smallNames) == len(value)
}

var smallNames = classOf("a-z", "/_.", "-")

// isChain reports whether a value is an expression, such as response.data1.token.
func isChain(value string) bool {
	first, _, ok := strings.Cut(value, ".")
	return ok && first != "" && !digit[first[0]] && run(value, chain) == len(value)
}

var chain = classOf("A-Z", "a-z", "0-9", "_.")
