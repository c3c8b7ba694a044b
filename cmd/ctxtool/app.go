package main

import (
	"io"
	"time"

	"github.com/ctxdir/ctxdir/internal/term"
)

// app is one run of the command: where it reads and writes, and the global flags.
type app struct {
	stdin  io.Reader
	out    *term.Output
	stderr io.Writer
	env    func(string) string

	storeDir    string
	json        bool
	quiet       bool
	verbose     bool
	noProgress  bool
	noPager     bool
	silent      bool // do not report an interrupt: it is how the verb ends
	noGC        bool
	yes         bool // do not ask before removing anything
	dryRun      bool // the verb prints its plan; the store is opened read-only
	nulls       bool // of files: paths end with a zero byte
	collects    bool // closing the store collects garbage
	lockTimeout time.Duration
}
