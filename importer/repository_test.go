package importer

import "testing"

func TestRepositoryName(t *testing.T) {
	for address, want := range map[string]string{
		"git@Example.org:ada/walk.git":            "example.org/ada/walk",
		"ssh://git@example.org:2222/ada/walk.git": "example.org/ada/walk",
		"https://ada:secret@example.org/ada/walk": "example.org/ada/walk",
		"https://example.org/ada/walk.git/":       "example.org/ada/walk",
		"git://example.org/a/b/c":                 "example.org/a/b/c",
		"/srv/git/walk.git":                       "",
		"../walk":                                 "",
		"file:///srv/git/walk.git":                "",
		`C:\git\walk`:                             "",
		"":                                        "",
		"https://example.org":                     "",
		"./a:b":                                   "",
		"example.org:walk":                        "example.org/walk",
		"https://example.org/ada/walk?token=secret#": "example.org/ada/walk",
	} {
		if got := RepositoryName(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
