package crashfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
)

// Replace writes a temporary file, syncs it and renames it. Create, write, sync and rename are an operation each, and
// so is the remove after a failure.
func (f *FS) Replace(name string, data []byte) error {
	dir, base := path.Split(name)
	if dir == "" {
		return f.replace(base, data)
	}
	sub, err := f.Sub(path.Clean(dir))
	if err != nil {
		return err
	}
	return sub.(*FS).replace(base, data)
}

func (f *FS) replace(base string, data []byte) error {
	for {
		tmp := "." + path.Base(base) + f.d.tempNumber()
		h, err := f.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = h.Write(data)
		if err == nil {
			err = h.Sync()
		}
		if cerr := h.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = f.Rename(tmp, base)
		}
		if err != nil {
			_ = f.Remove(tmp)
		}
		return err
	}
}

// tempNumber is splitmix64 of a counter: it looks random and is the same in every run.
func (d *disk) tempNumber() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nextTemp++
	z := d.nextTemp * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return strconv.FormatUint(z^z>>31, 10)
}
