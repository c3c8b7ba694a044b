package reference

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/ctxdir/ctxdir/transcript"
)

// places makes paths relative to the root of a workspace.
type places []string

// newPlaces returns the places for a message: the given folders, and the one that the message names.
func newPlaces(body json.RawMessage, folders []string) (p places) {
	for _, folder := range append(folders[:len(folders):len(folders)], workingFolder(body)) {
		if folder = slashed(folder); isAbsolute(folder) && path.Clean(folder) != "/" {
			p = append(p, path.Clean(folder))
		}
	}
	return p
}

// file returns a path relative to the root, "" if it is outside.
func (p places) file(name string) string {
	name = slashed(name)
	if isAbsolute(name) {
		name = p.below(path.Clean(name))
	} else if strings.HasPrefix(name, "~") {
		return ""
	}
	if name = path.Clean(name); !validFile(name) || strings.Contains(name, ":/") {
		return ""
	}
	return name
}

func (p places) below(name string) string {
	for _, folder := range p {
		if rest, ok := strings.CutPrefix(name, folder+"/"); ok {
			return rest
		}
	}
	return ""
}

// slashed is a path with slashes, if it is one of Windows.
func slashed(name string) string {
	if len(name) > 2 && name[1] == ':' || !strings.Contains(name, "/") {
		return strings.ReplaceAll(name, `\`, "/")
	}
	return name
}

func isAbsolute(name string) bool {
	return strings.HasPrefix(name, "/") || len(name) > 2 && name[1] == ':' && name[2] == '/'
}

// workingFolder is the folder in which the tool of a record worked.
func workingFolder(body json.RawMessage) string { return transcript.ObjectOf(body).Text("cwd") }
