package term

import (
	"os"

	"golang.org/x/sys/windows"
)

// DiscardTyped drops what was typed on a console and not read yet.
func DiscardTyped(f *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }
