package trpcagent_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/contrib/trpcagent"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
	_ "github.com/mattn/go-sqlite3" // the driver
	"trpc.group/trpc-go/trpc-agent-go/graph"
	"trpc.group/trpc-go/trpc-agent-go/graph/checkpoint/sqlite"
)

// BenchmarkPut compares the durable write of a checkpoint with that of the framework's SQLite saver (WAL, FULL), and
// reading the newest one.
func BenchmarkPut(b *testing.B) {
	db, err := sql.Open("sqlite3", filepath.Join(b.TempDir(), "db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		b.Fatal(err)
	}
	other, err := sqlite.NewSaver(db)
	if err != nil {
		b.Fatal(err)
	}
	defer other.Close()
	config := graph.CreateCheckpointConfig("l", "", "")
	for name, s := range map[string]graph.CheckpointSaver{"ctxdir": trpcagent.NewSaver(adaptertest.Open(b, "")), "sqlite": other} {
		b.Run(name+"/put", func(b *testing.B) {
			for b.Loop() {
				c := graph.NewCheckpoint(map[string]any{"messages": []string{"hello", "world"}}, nil, nil)
				if _, err := s.PutFull(b.Context(), graph.PutFullRequest{Config: config, Checkpoint: c}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/latest", func(b *testing.B) {
			for b.Loop() {
				if t, err := s.GetTuple(b.Context(), graph.CreateCheckpointConfig("l", "", "")); t == nil || err != nil {
					b.Fatal(t, err)
				}
			}
		})
	}
}
