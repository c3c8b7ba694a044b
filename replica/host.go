package replica

import (
	"os"
	"strings"
)

// hostName returns the name of this machine, without the domain, in characters that every name of a branch can have.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		name = ""
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
