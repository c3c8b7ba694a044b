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
	sound  = verdict{OK, "the promises hold here", ""}
	remote = verdict{
		Warning,
		"a network file system: the server decides whether syncs reach a disk and whether locks exclude other machines",
		toDisk,
	}
	memory = verdict{Warning, "it is in memory: a restart or a power cut loses everything", toDisk}
	shared = verdict{Warning, "a folder of the host machine: syncs may stop in the host's memory, and locks may not apply there", toDisk}
	served = verdict{Warning, "a FUSE program serves it, and decides whether syncs and locks work", toDisk}
	bare   = verdict{Warning, "it has no journal: a power cut can damage it, synced files included", toDisk}
)

// fileSystems lists the known file systems, by the kernel's names.
var fileSystems = map[string]verdict{
	"ext4":     sound,
	"ext3":     sound,
	"xfs":      sound,
	"btrfs":    sound,
	"f2fs":     {Info, "its documentation promises durable syncs; the tests of power cuts do not cover it", ""},
	"bcachefs": {Info, "its documentation promises durable syncs; the tests of power cuts do not cover it", ""},
	"zfs":      {Info, "syncs are durable unless the dataset has sync=disabled, which this check cannot see", "run \"zfs get sync\""},
	"overlay": {Info, "usually a container's folder: removing the container removes the store",
		"keep the store on a volume"},
	"ext2":             bare,
	"vfat":             bare,
	"msdos":            bare,
	"exfat":            bare,
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
		return []Finding{{Kind: KindFileSystem, Severity: Info, Detail: "the system does not report it"}}
	}
	v, ok := fileSystems[f.FileSystem]
	if !ok && strings.HasPrefix(f.FileSystem, "fuse.") {
		v, ok = served, true
	}
	if !ok {
		v = verdict{Info, "this check does not know it; the promises are tested on ext4, XFS and btrfs", ""}
	}
	return []Finding{{Kind: KindFileSystem, Severity: v.severity, Detail: f.FileSystem + ": " + v.why, Hint: v.hint}}
}

// weakening lists the options that break a promise on any file system. data=writeback does not: the engine syncs what
// it relies on, and sums detect the rest.
var weakening = map[string]string{
	"nobarrier":            "syncs do not flush the disk's cache",
	"barrier=0":            "syncs do not flush the disk's cache",
	"barrier=none":         "syncs do not flush the disk's cache",
	"fsync=volatile":       "syncs do nothing", // overlayfs, as newer kernels report it
	"fsync_mode=nobarrier": "syncs do not flush the disk's cache",
	"volatile":             "syncs do nothing",
}

func (f Facts) mount() []Finding {
	if len(f.Options) == 0 {
		return nil
	}
	var found []Finding
	for _, o := range f.Options {
		if what := weakening[o]; what != "" {
			found = append(found, Finding{
				Kind: KindMount, Severity: Warning, Path: f.Mount, Hint: "mount it without this option",
				Detail: fmt.Sprintf("mounted with %s: %s, so a power cut can lose acknowledged messages", o, what),
			})
		}
	}
	if slices.Contains(f.Options, "ro") {
		found = append(found, Finding{Kind: KindMount, Severity: Warning, Path: f.Mount, Detail: "mounted read-only: appends fail"})
	}
	if slices.Contains(f.Options, "sync") || slices.Contains(f.Options, "dirsync") {
		found = append(found, Finding{
			Kind: KindMount, Severity: Info, Path: f.Mount,
			Detail: "mounted with sync or dirsync: every write waits for the disk, which is slow and unnecessary",
		})
	}
	if found == nil {
		found = []Finding{{Kind: KindMount, Severity: OK, Path: f.Mount, Detail: "no option weakens a promise"}}
	}
	return found
}
