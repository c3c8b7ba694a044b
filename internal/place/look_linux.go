package place

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// magics names file systems by statfs, in case mountinfo does not. statfs cannot distinguish relatives of ext4 or FUSE.
var magics = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.F2FS_SUPER_MAGIC: "f2fs",
	unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.FUSE_SUPER_MAGIC: "fuse",
	unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smbfs", unix.CIFS_SUPER_MAGIC: "cifs", unix.SMB2_SUPER_MAGIC: "cifs",
	unix.AFS_SUPER_MAGIC: "afs", unix.CEPH_SUPER_MAGIC: "ceph", unix.CODA_SUPER_MAGIC: "coda", unix.V9FS_MAGIC: "9p",
	unix.MSDOS_SUPER_MAGIC: "vfat", unix.EXFAT_SUPER_MAGIC: "exfat", 0x2fc12fc1: "zfs", 0xca451a4e: "bcachefs", 0x786f4256: "vboxsf",
}

// Look gathers the system's facts about a folder.
func Look(dir string) (Facts, error) {
	f := Facts{System: runtime.GOOS}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return f, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	f.FileSystem = magics[int64(uint32(st.Type))]
	unit := uint64(st.Bsize)
	f.Size, f.Free = st.Blocks*unit, st.Bavail*unit
	f.Inodes, f.FreeInodes = st.Files, st.Ffree
	if m, err := mountUnder(dir); err == nil {
		f.FileSystem, f.Mount, f.Device, f.Options = m.kind, m.point, m.device, m.options
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		f.OpenFiles = limit.Cur
	}
	f.Watches, f.Instances = setting("max_user_watches"), setting("max_user_instances")
	return f, nil
}

// mount is a line of mountinfo.
type mount struct {
	device, point, kind string
	options             []string // of the mount, then of the file system
}

// mountUnder finds the mount of a folder.
func mountUnder(dir string) (mount, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID, &st); err != nil {
		return mount{}, err
	}
	if st.Mask&unix.STATX_MNT_ID == 0 {
		return mount{}, errors.ErrUnsupported // before Linux 5.8
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return mount{}, err
	}
	defer f.Close()
	return readMount(f, st.Mnt_id)
}

// readMount finds a mount in the format of proc_pid_mountinfo(5).
func readMount(r io.Reader, id uint64) (mount, error) {
	want := strconv.FormatUint(id, 10)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		head, tail, ok := strings.Cut(lines.Text(), " - ")
		at, of := strings.Fields(head), strings.Fields(tail)
		if !ok || len(at) < 6 || len(of) < 3 || at[0] != want {
			continue
		}
		return mount{
			device: at[2], point: unescape(at[4]), kind: of[0],
			options: append(strings.Split(at[5], ","), strings.Split(of[2], ",")...),
		}, nil
	}
	if err := lines.Err(); err != nil {
		return mount{}, err
	}
	return mount{}, fmt.Errorf("mount %d not found in mountinfo", id)
}

// unescape decodes characters that the kernel writes as a backslash and three octal digits.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// setting returns a limit of inotify, or 0 if it is unknown.
func setting(name string) uint64 {
	b, err := os.ReadFile("/proc/sys/fs/inotify/" + name)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64)
	return n
}

// Apart finds the subfolders on another file system: nothing can move between them and the others.
func Apart(dir string) ([]string, error) {
	var of, st unix.Stat_t
	if err := unix.Stat(dir, &of); err != nil {
		return nil, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var apart []string
	for _, e := range entries {
		if e.IsDir() && unix.Lstat(filepath.Join(dir, e.Name()), &st) == nil && st.Dev != of.Dev {
			apart = append(apart, e.Name())
		}
	}
	return apart, nil
}
