package disk

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// serverEnv makes a process a disk: see Started.
const serverEnv = "CTXDIR_TEST_DISK"

// Started serves a disk and reports true, if this process is to. A program that switches disks on calls it first.
func Started() bool {
	if os.Getenv(serverEnv) == "" {
		return false
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "disk:", err)
		os.Exit(1)
	}
	return true
}

// serve serves a disk until it is unmounted, or until whoever started it is gone.
func serve(image string) error {
	d, err := openCache(image)
	if err != nil {
		return err
	}
	// The third file is the device, which whoever started this mounts; the fourth one a counter.
	if d.supers, err = counter(os.NewFile(4, "superblocks")); err != nil {
		return err
	}
	orders := json.NewDecoder(os.Stdin)
	if err := orders.Decode(&order{}); err != nil { // it is mounted now
		return err
	}
	server, err := fuse.NewServer(&files{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d}, "/dev/fd/3", &fuse.MountOptions{
		MaxWrite: 1 << 20, DisableXAttrs: true,
	})
	if err != nil {
		return err
	}
	go server.Serve()
	fmt.Println("ready")
	go d.obey(orders)
	server.Wait()
	if d.off {
		return nil
	}
	if errno := d.flush(); errno != 0 {
		return fmt.Errorf("flush: %w", errno)
	}
	return nil
}

// obey takes orders on stdin, and ends the process when there will be no more.
func (d *cache) obey(orders *json.Decoder) {
	says := json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			unix.Exit(1)
		}
		if o.Fail != nil {
			d.fail(*o.Fail)
			continue
		}
		d.cut(o, func(c Cut) { _ = says.Encode(c) }) // who does not hear it is gone
	}
}
