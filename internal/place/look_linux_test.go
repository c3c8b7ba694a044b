package place

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"golang.org/x/sys/unix"
)

const mounts = `22 27 0:21 / /proc rw,relatime shared:2 - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
36 35 98:0 /mnt1 /mnt/my\040disk rw,noatime master:1 - fuse.sshfs me@there: ro,errors=continue
short line
`

func TestReadMount(t *testing.T) {
	m, err := readMount(strings.NewReader(mounts), 36)
	if err != nil || m.kind != "fuse.sshfs" || m.point != "/mnt/my disk" || m.device != "98:0" ||
		!slices.Equal(m.options, []string{"rw", "noatime", "ro", "errors=continue"}) {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := readMount(strings.NewReader(mounts), 3); err == nil {
		t.Errorf("%+v", m)
	}
}

func TestMagics(t *testing.T) {
	for magic, name := range magics {
		if _, ok := fileSystems[name]; !ok {
			t.Errorf("%#x: nothing is known of %s", magic, name)
		}
	}
	if magics[unix.TMPFS_MAGIC] != "tmpfs" || magics[0xef53] != "ext4" || magics[0x6969] != "nfs" {
		t.Error("wrong names")
	}
}

func TestReadLocks(t *testing.T) {
	const locks = `1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
1: -> FLOCK  ADVISORY  WRITE 4712 fe:00:131 0 EOF
2: FLOCK  ADVISORY  READ 12 fe:00:132 0 EOF
3: FLOCK  ADVISORY  READ 0 fe:00:132 0 EOF
4: POSIX  ADVISORY  WRITE 13 fe:00:133 0 EOF
5: FLOCK  ADVISORY  WRITE 14 fe:01:134 0 EOF
6: OFDLCK ADVISORY  READ -1 fe:00:135 0 0
`
	held, err := readLocks(strings.NewReader(locks), "254:0")
	if err != nil || len(held) != 2 || !slices.Equal(held[131], []int{4711}) || !slices.Equal(held[132], []int{12, 0}) {
		t.Errorf("%v, %v", held, err)
	}
	if held, err := readLocks(strings.NewReader(locks), ""); err != nil || len(held) > 0 {
		t.Errorf("of no device: %v, %v", held, err)
	}
}

// TestHolders holds a lock and is found.
func TestHolders(t *testing.T) {
	dir := t.TempDir()
	facts, err := Look(dir)
	if err != nil || facts.Device == "" {
		t.Skipf("which device it is on is not told: %v", err)
	}
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	lock := fsys.Lock("held")
	defer lock.Close()
	if err := lock.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/left", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []Holder{{"held", os.Getpid()}}
	if found, err := Holders(dir, facts.Device); err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v, wanted %v", found, err, want)
	}
	lock.Close()
	if found, err := Holders(dir, facts.Device); err != nil || len(found) > 0 {
		t.Errorf("after it was given back: %v, %v", found, err)
	}
}

func TestLook(t *testing.T) {
	facts, err := Look(t.TempDir())
	if err != nil || facts.System != "linux" || facts.FileSystem == "" && facts.Size == 0 {
		t.Errorf("%+v, %v", facts, err)
	}
	if _, err := Look("/nowhere/at/all"); err == nil {
		t.Error("a folder that is not there has a place")
	}
}

// TestApart finds what is mounted below a folder.
func TestApart(t *testing.T) {
	if apart, err := Apart(t.TempDir()); err != nil || len(apart) > 0 {
		t.Errorf("%v, %v", apart, err)
	}
	var root, proc unix.Stat_t
	if unix.Stat("/", &root) != nil || unix.Stat("/proc", &proc) != nil || root.Dev == proc.Dev {
		t.Skip("nothing is mounted on /proc")
	}
	if apart, err := Apart("/"); err != nil || !slices.Contains(apart, "proc") {
		t.Errorf("%v, %v", apart, err)
	}
}
