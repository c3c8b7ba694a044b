//go:build cgo

package engine

import (
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

var mattnEngine = &Engine{
	Name:   Mattn,
	About:  "the same schema, statements and settings, with the C library",
	Module: "github.com/mattn/go-sqlite3",
	Open: func(dir string, d Durability) (Store, error) {
		sync := "FULL"
		if d == Relaxed {
			sync = "NORMAL"
		}
		return openSQLite("sqlite3", "_busy_timeout=10000&_journal_mode=WAL&_synchronous="+sync+"&_cache_size=-65536&_txlock=immediate", dir)
	},
}
