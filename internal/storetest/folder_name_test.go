package storetest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestFolderNameAgain: a handle has the folder of a branch open. Another process renames the branch, gives its old name
// to a new one, and is killed before the file of a message there is made. The handle makes that file, in the folder of the new line.
func TestFolderNameAgain(t *testing.T) {
	ctx := context.Background()
	for _, purged := range []bool{false, true} {
		mine, dir := kit.NewContext(t, engine.WithSealBytes(-1))
		kit.Append(t, mine.Active(), engine.Draft{Body: []byte(`{}`)}) // opens branch-main
		kit.Check(t, mine.Flush(ctx))

		s := kit.Must[*engine.Store](t)(kit.Open(filepath.Dir(dir), engine.WithSealBytes(-1), engine.WithFiles(engine.FilesHeld)))
		other := kit.Must[*engine.Context](t)(s.Context(ctx, mine.ID()))
		kit.Check(t, other.Rename(ctx, "main", "old"))
		kit.Must[*engine.Branch](t)(kit.Must[*engine.Branch](t)(other.Branch("old")).Fork(ctx, "main", 0))
		if purged { // a line that the handle knew is not in the metadata any more
			kit.Check(t, other.Switch(ctx, "main"), other.Remove(ctx, "old"), kit.CollectAll(s, 0))
		}
		main := kit.Must[*engine.Branch](t)(other.Branch("main"))
		a := kit.Append(t, main, engine.Draft{Body: []byte(`{}`)}) // without its file

		kit.Check(t, mine.Flush(ctx))
		files, err := filepath.Glob(filepath.Join(dir, "messages", "*", a.ID.String()+".json"))
		if want := filepath.Join(dir, "messages", "branch-main~2", a.ID.String()+".json"); err != nil || len(files) != 1 || files[0] != want {
			t.Errorf("purged %v: %q, %v; wanted %s", purged, files, err, want)
		}
		if _, err := os.Lstat(filepath.Join(dir, "messages", "branch-main")); purged == (err == nil) {
			t.Errorf("purged %v: the other folder: %v", purged, err)
		}
		kit.Check(t, other.Close(), s.Close())
	}
}
