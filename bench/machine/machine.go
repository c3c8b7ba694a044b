// Package machine says what a benchmark ran on, and makes the few system calls that package os lacks.
package machine

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Info describes the machine. It holds neither its name nor a path.
type Info struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	MemoryMiB  int64  `json:"memory_mib"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	FileSystem string `json:"file_system"`
	Go         string `json:"go"`
}

// Describe describes the machine and the file system that dir is on.
func Describe(dir string) Info {
	info := Info{
		CPU: "unknown", Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Kernel: kernel(), FileSystem: FileSystem(dir), Go: runtime.Version(),
	}
	for line := range lines("/proc/cpuinfo") {
		if name, ok := member(line, "model name"); ok {
			info.CPU = name
			break
		}
	}
	for line := range lines("/proc/meminfo") {
		if v, ok := member(line, "MemTotal"); ok {
			info.MemoryMiB = kilobytes(v) >> 10
			break
		}
	}
	return info
}

// ModuleVersion is the version of a module this program was built with, empty when it is not in it.
func ModuleVersion(path string) string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range b.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return ""
}

// PeakRSS is the most memory, in bytes, that this process ever held at once.
//
// It is read from /proc rather than from getrusage, whose maximum a process inherits from the one that started
// it: a worker would show the benchmark's own size.
func PeakRSS() int64 {
	for line := range lines("/proc/self/status") {
		if v, ok := member(line, "VmHWM"); ok {
			return kilobytes(v) << 10
		}
	}
	return maxRSS()
}

// Written is how many bytes of pages this process has written to. 0 if the system does not tell.
func Written() int64 {
	for line := range lines("/proc/self/io") {
		if v, ok := member(line, "write_bytes"); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}

func lines(path string) func(yield func(string) bool) {
	b, _ := os.ReadFile(path) // not Linux: nothing to say
	return strings.SplitSeq(string(b), "\n")
}

func member(line, name string) (string, bool) {
	k, v, ok := strings.Cut(line, ":")
	return strings.TrimSpace(v), ok && strings.TrimSpace(k) == name
}

func kilobytes(s string) int64 {
	var n int64
	for _, c := range strings.TrimSuffix(s, " kB") {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
