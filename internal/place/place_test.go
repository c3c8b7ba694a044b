package place

import (
	"strings"
	"testing"
)

// linux is a place where all is well.
func linux() Facts {
	return Facts{
		System: "linux", FileSystem: "ext4", Mount: "/home", Device: "8:1", Options: []string{"rw", "relatime", "data=writeback"},
		Size: 100 << 30, Free: 50 << 30, Inodes: 1 << 24, FreeInodes: 1 << 23, OpenFiles: 1024, Watches: 65536, Instances: 128,
	}
}

// worst is the worst finding of a kind; its severity is empty where there is none.
func worst(found []Finding, kind Kind) (x Finding) {
	rank := map[Severity]int{"": 0, OK: 1, Info: 2, Warning: 3, Error: 4}
	for _, f := range found {
		if f.Kind == kind && rank[f.Severity] > rank[x.Severity] {
			x = f
		}
	}
	return x
}

func TestAllIsWell(t *testing.T) {
	for _, f := range linux().Findings(1000) {
		if f.Severity != OK || f.Hint != "" || f.Detail == "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestFindings(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *Facts)
		kind   Kind
		want   Severity
		says   string
	}{
		"XFS":                 {func(f *Facts) { f.FileSystem = "xfs" }, KindFileSystem, OK, "promises hold"},
		"Btrfs":               {func(f *Facts) { f.FileSystem = "btrfs" }, KindFileSystem, OK, "promises hold"},
		"no journal":          {func(f *Facts) { f.FileSystem = "ext2" }, KindFileSystem, Warning, "no journal"},
		"memory":              {func(f *Facts) { f.FileSystem = "tmpfs" }, KindFileSystem, Warning, "loses everything"},
		"NFS":                 {func(f *Facts) { f.FileSystem = "nfs4" }, KindFileSystem, Warning, "network"},
		"SMB":                 {func(f *Facts) { f.FileSystem = "cifs" }, KindFileSystem, Warning, "network"},
		"SSH":                 {func(f *Facts) { f.FileSystem = "fuse.sshfs" }, KindFileSystem, Warning, "network"},
		"any FUSE":            {func(f *Facts) { f.FileSystem = "fuse.gocryptfs" }, KindFileSystem, Warning, "FUSE"},
		"host's folder":       {func(f *Facts) { f.FileSystem = "9p" }, KindFileSystem, Warning, "host machine"},
		"container":           {func(f *Facts) { f.FileSystem = "overlay" }, KindFileSystem, Info, "container"},
		"ZFS":                 {func(f *Facts) { f.FileSystem = "zfs" }, KindFileSystem, Info, "sync=disabled"},
		"never heard of":      {func(f *Facts) { f.FileSystem = "newfs" }, KindFileSystem, Info, "newfs: this check does not know it"},
		"not reported":        {func(f *Facts) { f.FileSystem = "" }, KindFileSystem, Info, "does not report"},
		"no barriers":         {func(f *Facts) { f.Options = []string{"rw", "nobarrier"} }, KindMount, Warning, "nobarrier"},
		"barriers off":        {func(f *Facts) { f.Options = []string{"barrier=0"} }, KindMount, Warning, "barrier=0"},
		"volatile overlay":    {func(f *Facts) { f.Options = []string{"volatile"} }, KindMount, Warning, "syncs do nothing"},
		"volatile, newer":     {func(f *Facts) { f.Options = []string{"fsync=volatile"} }, KindMount, Warning, "syncs do nothing"},
		"read-only":           {func(f *Facts) { f.Options = []string{"ro"} }, KindMount, Warning, "read-only: appends fail"},
		"every write waits":   {func(f *Facts) { f.Options = []string{"rw", "sync"} }, KindMount, Info, "slow"},
		"no options known":    {func(f *Facts) { f.Options = nil }, KindMount, "", ""},
		"full":                {func(f *Facts) { f.Free = 1 << 20 }, KindSpace, Error, "1.0 MiB of 100 GiB free: too little"},
		"nearly full":         {func(f *Facts) { f.Free = 100 << 20 }, KindSpace, Warning, "may not fit"},
		"no free space known": {func(f *Facts) { f.Size, f.Free = 0, 0 }, KindSpace, Info, "does not report"},
		"no inodes":           {func(f *Facts) { f.FreeInodes = 3 }, KindInodes, Error, "3 of 16,777,216"},
		"few inodes":          {func(f *Facts) { f.FreeInodes = 3000 }, KindInodes, Warning, "every message is a file"},
		"inodes as needed":    {func(f *Facts) { f.Inodes, f.FreeInodes = 0, 0 }, KindInodes, "", ""},
		"few open files":      {func(f *Facts) { f.OpenFiles = 64 }, KindOpenFiles, Warning, "may open 64 files"},
		"open files hidden":   {func(f *Facts) { f.OpenFiles = 0 }, KindOpenFiles, "", ""},
		"few watches":         {func(f *Facts) { f.Watches = 1000 }, KindWatches, Warning, "1,000 contexts"},
		"few instances":       {func(f *Facts) { f.Instances = 2 }, KindWatches, Warning, "2 inotify instances"},
		"no inotify":          {func(f *Facts) { f.Watches = 0 }, KindWatches, "", ""},
		"other system":        {func(f *Facts) { f.System = "darwin" }, KindSystem, Info, "darwin"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := linux()
			test.change(&facts)
			x := worst(facts.Findings(1000), test.kind)
			if x.Severity != test.want || !strings.Contains(x.Detail, test.says) {
				t.Errorf("%+v, wanted %q with %q", x, test.want, test.says)
			}
		})
	}
}
