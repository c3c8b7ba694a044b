package engine

import (
	_ "modernc.org/sqlite" // the driver "sqlite"
)

var moderncEngine = &Engine{
	Name:   Modernc,
	About:  aboutSQLite,
	Module: "modernc.org/sqlite",
	Open: func(dir string, d Durability) (Store, error) {
		sync := "FULL"
		if d == Relaxed {
			sync = "NORMAL"
		}
		return openSQLite("sqlite", "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous("+sync+
			")&_pragma=cache_size(-65536)&_txlock=immediate", dir)
	},
}
