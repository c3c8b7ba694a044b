package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// discardTyped drops what was typed on a console and not read yet.
func discardTyped(f *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }
