package ctxdir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
)

// adopt stores every history in a folder, of all tools that importer.Formats lists.
func adopt(ctx context.Context, s *ctxdir.Store, root string) (added int64, err error) {
	for path, err := range importer.Files(root) {
		if err != nil {
			return added, err
		}
		for r, err := range importer.Import(ctx, s.Importer(), path, importer.Options{}) {
			added += r.Added
			if err != nil {
				log.Printf("%s: %v", path, err)
			}
		}
	}
	return added, nil
}

func Example_histories() {
	ctx := context.Background()
	s, _, done := temporary("A walk")
	defer done()
	for range 2 {
		fmt.Println(adopt(ctx, s, "testdata/openai"))
	}
	// Output:
	// 14 <nil>
	// 0 <nil>
}

const old = `{
  "id": "0a000000-0000-4000-8000-000000000001",
  "parent_id": null,
  "config": {},
  "message_pool": {
    "0a000000-0000-4000-8000-000000000002": {
      "id": "0a000000-0000-4000-8000-000000000002",
      "parent_id": null,
      "message": {"role": "user", "content": "Which way?"}
    }
  },
  "branches": {"main": {"name": "main", "message_ids": ["0a000000-0000-4000-8000-000000000002"]}},
  "active_branch_name": "main",
  "current_state": "Idle"
}`

func Example_legacy() {
	ctx := context.Background()
	s, _, done := temporary("A walk")
	defer done()
	path := filepath.Join(must(os.MkdirTemp("", "old-")), "0a000000-0000-4000-8000-000000000001.json")
	defer os.RemoveAll(filepath.Dir(path))
	check(os.WriteFile(path, []byte(old), 0o600))

	did := must(s.Migrate(ctx, path, ctxdir.MigrateOptions{}))
	fmt.Println(did.Context, did.Branches, did.Messages, filepath.Base(did.Backup))
	c := must(s.Open(ctx, did.Context))
	defer c.Close()
	list(c.Active())
	// Output:
	// 0a000000-0000-4000-8000-000000000001 1 1 0a000000-0000-4000-8000-000000000001.json.old
	// 0 {"role":"user","content":"Which way?"}
}
