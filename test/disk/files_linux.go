package disk

import (
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	fileName = "disk"
	fileNode = 2 // after the root
)

// files is a file system with one file, which is the disk.
type files struct {
	fuse.RawFileSystem
	disk *cache
}

func (f *files) attributes(node uint64, a *fuse.Attr) {
	*a = fuse.Attr{Ino: node, Mode: fuse.S_IFDIR | 0o700, Nlink: 2}
	if node == fileNode {
		a.Mode, a.Nlink, a.Size = fuse.S_IFREG|0o600, 1, uint64(f.disk.size)
	}
}

func (f *files) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if in.NodeId != fuse.FUSE_ROOT_ID || name != fileName {
		return fuse.ENOENT
	}
	out.NodeId = fileNode
	f.attributes(fileNode, &out.Attr)
	return fuse.OK
}

func (f *files) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.attributes(in.NodeId, &out.Attr)
	return fuse.OK
}

func (f *files) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.attributes(in.NodeId, &out.Attr) // times, of which it has none
	return fuse.OK
}

func (f *files) Open(_ <-chan struct{}, _ *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status { return fuse.OK }

func (f *files) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	n := max(0, min(int64(in.Size), int64(len(buf)), f.disk.size-int64(in.Offset)))
	errno := f.disk.readAt(buf[:n], int64(in.Offset))
	return fuse.ReadResultData(buf[:n]), fuse.Status(errno)
}

func (f *files) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	errno := f.disk.writeAt(data, int64(in.Offset))
	return uint32(len(data)), fuse.Status(errno)
}

func (f *files) Fsync(_ <-chan struct{}, _ *fuse.FsyncIn) fuse.Status {
	return fuse.Status(f.disk.flush())
}

// Flush is for a descriptor that is closed, and has nothing to do with the disk's cache.
func (f *files) Flush(_ <-chan struct{}, _ *fuse.FlushIn) fuse.Status { return fuse.OK }

func (f *files) Release(_ <-chan struct{}, _ *fuse.ReleaseIn) {}
