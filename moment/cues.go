package moment

import "regexp"

var simple = regexp.MustCompile(`(?i)\b(?:decided to|we will use)\b`)

func classify(s string) (Type, float64) {
	if simple.MatchString(s) {
		return Decision, 0.7
	}
	return "", 0
}
