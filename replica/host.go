package replica

import (
	"os"
	"strings"
)

// hostName returns the name of a machine, this one if it is empty: without the domain, in characters that every name of a branch
// can have.
func hostName(name string) string {
	if name == "" {
		name, _ = os.Hostname()
	}
	name, _, _ = strings.Cut(name, ".")
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, name)
	if name = strings.Trim(name, "-"); name == "" {
		name = "local"
	}
	return name[:min(len(name), 40)]
}
