package crashfs

import "slices"

const (
	pageSize   = 4096
	sectorSize = 512
	maxSize    = 1 << 36
)

type page [pageSize]byte

// content is the bytes of a file. Written pages never change, so copies share them. A nil or missing page is a hole.
// Bytes past size are zero.
type content struct {
	size  int64
	pages []*page
}

func (c *content) clone() content {
	return content{c.size, slices.Clone(c.pages)}
}

func (c *content) readAt(b []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	b = b[:min(int64(len(b)), c.size-off)]
	for n := 0; n < len(b); {
		i, in := (off+int64(n))/pageSize, (off+int64(n))%pageSize
		part := b[n:min(len(b), n+int(pageSize-in))]
		if i < int64(len(c.pages)) && c.pages[i] != nil {
			copy(part, c.pages[i][in:])
		} else {
			clear(part)
		}
		n += len(part)
	}
	return len(b)
}

func (c *content) writeAt(b []byte, off int64) {
	if len(b) == 0 {
		return
	}
	c.size = max(c.size, off+int64(len(b)))
	if need := int((off + int64(len(b)) + pageSize - 1) / pageSize); need > len(c.pages) {
		c.pages = append(c.pages, make([]*page, need-len(c.pages))...)
	}
	for len(b) > 0 {
		i, in := off/pageSize, off%pageSize
		p := new(page)
		if c.pages[i] != nil {
			*p = *c.pages[i]
		}
		n := copy(p[in:], b)
		c.pages[i] = p
		b, off = b[n:], off+int64(n)
	}
}

func (c *content) truncate(size int64) {
	if size < c.size {
		if keep := int((size + pageSize - 1) / pageSize); keep < len(c.pages) {
			clear(c.pages[keep:])
			c.pages = c.pages[:keep]
		}
		if i, in := size/pageSize, size%pageSize; in > 0 && i < int64(len(c.pages)) && c.pages[i] != nil {
			p := *c.pages[i]
			clear(p[in:])
			c.pages[i] = &p
		}
	}
	c.size = size
}
