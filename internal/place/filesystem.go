package place

import (
	"fmt"
	"slices"
	"strings"
)

// verdict states whether the promises hold on a file system.
type verdict struct {
	severity Severity
	why      string
	hint     string
}

const toDisk = "keep the store on a local disk; \"ctxtool backup\" copies contexts to another one"

var (
	sound  = verdict{OK, "the promises hold on it", ""}
	remote = verdict{
		Warning,
		"a network file system: whether a sync reaches a disk, and whether a lock counts for other machines, is up to the server",
		toDisk,
	}
	memory = verdict{Warning, "in memory: nothing survives a restart or a power cut", toDisk}
	shared = verdict{Warning, "another machine's folder: a sync may end in its memory, and a lock may not count there", toDisk}
	served = verdict{Warning, "a program serves it (FUSE): whether syncs and locks do anything is up to that", toDisk}
	plain  = verdict{Warning, "it has no journal: a power cut can harm the file system itself, whatever was synced", toDisk}
)

// fileSystems lists the known file systems, by the kernel's names.
var fileSystems = map[string]verdict{
	"ext4":     sound,
	"ext3":     sound,
	"xfs":      sound,
	"btrfs":    sound,
	"f2fs":     {Info, "a sync is one by its documentation; the tests of power cuts have no case of it", ""},
	"bcachefs": {Info, "a sync is one by its documentation; the tests of power cuts have no case of it", ""},
	"zfs":      {Info, "a sync is one unless the dataset has sync=disabled, which cannot be seen from here", "\"zfs get sync\" tells"},
	"overlay": {Info, "a container's folder, as a rule: syncs go to the file system below, and the store goes when the container is removed",
		"keep the store on a volume"},
	"ext2":             plain,
	"vfat":             plain,
	"msdos":            plain,
	"exfat":            plain,
	"tmpfs":            memory,
	"ramfs":            memory,
	"nfs":              remote,
	"nfs4":             remote,
	"cifs":             remote,
	"smb3":             remote,
	"smbfs":            remote,
	"afs":              remote,
	"ceph":             remote,
	"glusterfs":        remote,
	"lustre":           remote,
	"gpfs":             remote,
	"ncpfs":            remote,
	"coda":             remote,
	"beegfs":           remote,
	"fuse.sshfs":       remote,
	"fuse.glusterfs":   remote,
	"fuse.ceph":        remote,
	"fuse.s3fs":        remote,
	"fuse.rclone":      remote,
	"fuse.gcsfuse":     remote,
	"fuse.juicefs":     remote,
	"fuse.davfs":       remote,
	"9p":               shared,
	"virtiofs":         shared,
	"vboxsf":           shared,
	"vmhgfs":           shared,
	"prl_fs":           shared,
	"fuse.vmhgfs-fuse": shared,
	"fuse":             served,
	"fuseblk":          served,
}

func (f Facts) fileSystem() []Finding {
	if f.FileSystem == "" {
		return []Finding{{Kind: KindFileSystem, Severity: Info, Detail: "the system does not tell which one it is"}}
	}
	v, ok := fileSystems[f.FileSystem]
	if !ok && strings.HasPrefix(f.FileSystem, "fuse.") {
		v, ok = served, true
	}
	if !ok {
		v = verdict{Info, "nothing is known of it here; the promises are tested for ext4, XFS and btrfs", ""}
	}
	return []Finding{{Kind: KindFileSystem, Severity: v.severity, Detail: f.FileSystem + ": " + v.why, Hint: v.hint}}
}

// takesBack lists the options that break a promise on any file system. data=writeback does not: the engine syncs what
// it relies on, and sums detect the rest.
var takesBack = map[string]string{
	"nobarrier":            "syncs do not empty the disk's cache",
	"barrier=0":            "syncs do not empty the disk's cache",
	"barrier=none":         "syncs do not empty the disk's cache",
	"fsync=volatile":       "syncs do nothing", // overlayfs, as newer kernels report it
	"fsync_mode=nobarrier": "syncs do not empty the disk's cache",
	"volatile":             "syncs do nothing",
}

func (f Facts) mount() []Finding {
	if len(f.Options) == 0 {
		return nil
	}
	var found []Finding
	for _, o := range f.Options {
		if what := takesBack[o]; what != "" {
			found = append(found, Finding{
				Kind:     KindMount,
				Severity: Warning,
				Path:     f.Mount,
				Detail: fmt.Sprintf(
					"mounted with %s: %s, and a power cut can take what was acknowledged",
					o,
					what,
				),
				Hint: "mount it without that option",
			})
		}
	}
	if slices.Contains(f.Options, "ro") {
		found = append(
			found,
			Finding{Kind: KindMount, Severity: Warning, Path: f.Mount, Detail: "mounted for reading only: nothing can be appended"},
		)
	}
	if slices.Contains(f.Options, "sync") || slices.Contains(f.Options, "dirsync") {
		found = append(found, Finding{
			Kind: KindMount, Severity: Info, Path: f.Mount,
			Detail: "mounted with sync or dirsync: every write waits for the disk; it is slow, and not needed",
		})
	}
	if found == nil {
		found = []Finding{{Kind: KindMount, Severity: OK, Path: f.Mount, Detail: "no option takes a promise back"}}
	}
	return found
}
