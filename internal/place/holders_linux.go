package place

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Holders finds the holders of the locks in a folder, on the device in [Facts]. It takes no lock.
func Holders(dir, device string) ([]Holder, error) {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	held, err := readLocks(f, device)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []Holder
	for _, e := range entries {
		var st unix.Stat_t
		if unix.Lstat(dir+"/"+e.Name(), &st) != nil {
			continue
		}
		for _, pid := range held[st.Ino] {
			found = append(found, Holder{e.Name(), pid})
		}
	}
	return found, nil
}

// readLocks parses proc_locks(5) and returns the processes that hold a flock of files on a device, by inode. The kernel
// reports 0 for a process that ended or is in another namespace.
func readLocks(r io.Reader, device string) (map[uint64][]int, error) {
	major, minor, _ := strings.Cut(device, ":")
	a, err := strconv.ParseUint(major, 10, 32)
	if err != nil {
		return nil, nil // the device is unknown
	}
	b, err := strconv.ParseUint(minor, 10, 32)
	if err != nil {
		return nil, nil
	}
	prefix := fmt.Sprintf("%02x:%02x:", a, b)
	held := map[uint64][]int{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		// "1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF"; a waiting process has "->" after the number.
		w := strings.Fields(lines.Text())
		if len(w) < 6 || w[1] != "FLOCK" {
			continue
		}
		number, ok := strings.CutPrefix(w[5], prefix)
		if !ok {
			continue
		}
		inode, ierr := strconv.ParseUint(number, 10, 64)
		pid, perr := strconv.Atoi(w[4])
		if ierr != nil || perr != nil || slices.Contains(held[inode], pid) {
			continue
		}
		held[inode] = append(held[inode], pid)
	}
	return held, lines.Err()
}
