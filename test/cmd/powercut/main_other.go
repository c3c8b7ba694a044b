//go:build !linux

// Powercut cuts the power of disks. It takes Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "powercut: it takes Linux")
	os.Exit(1)
}
