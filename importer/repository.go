package importer

import (
	"net/url"
	"strings"
)

// RepositoryName returns how a Git repository is known on every machine, from the address of a remote: the host and the path,
// as in "example.org/ada/walk". Scheme, user, password, port and ".git" are left out. It is empty if the address is no
// host's.
func RepositoryName(address string) string {
	host, path := "", ""
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil {
			return ""
		}
		host, path = u.Hostname(), u.Path
	} else if before, after, ok := strings.Cut(address, ":"); ok && len(before) > 1 && !strings.ContainsAny(before, `/\`) {
		host, path = before[strings.LastIndexByte(before, '@')+1:], after // as in git@example.org:ada/walk.git
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if host == "" || path == "" {
		return ""
	}
	return strings.ToLower(host) + "/" + path
}
