package moment

import (
	"context"
	"regexp"
	"strings"

	"github.com/ctxdir/ctxdir"
)

// KnownNames returns the names of projects, their folders, and branches that the contexts of a store have: what a
// filter of package privacy must remove in addition.
func KnownNames(ctx context.Context, s *ctxdir.Store) ([]string, error) {
	known := map[string]bool{}
	for sum, err := range s.List(ctx, ctxdir.ListOptions{Kind: "*"}) {
		if err != nil || sum.Problem != nil || sum.Legacy != "" {
			continue // its texts are not read either
		}
		for key, value := range sum.Labels {
			if key != "tool" {
				addName(known, value)
			}
		}
		err := s.Use(ctx, sum.ID, func(c *ctxdir.Context) error {
			for _, b := range c.Metadata().Branches {
				addName(known, b.Name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	return names, ctx.Err()
}

// unnamed are parts of paths and branches that name nothing.
var unnamed = regexp.MustCompile(`(?i)^(?:|main|master|moments(?:-\d+)?|fork(?:-\d+)?|branch(?:-\d+)?|alt|feature|feat|fix|bugfix|hotfix|` +
	`release|chore|home|users?|root|mnt|tmp|temp|var|opt|srv|src|work|works|workspaces?|projects?|code|dev|git|repos?|` +
	`documents|desktop|c:|d:)$`)

// addName adds the parts of a path or of a branch's name, except those that name nothing.
func addName(known map[string]bool, value string) {
	for name := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '/' || r == '\\' }) {
		if !unnamed.MatchString(name) {
			known[name] = true
		}
	}
}
