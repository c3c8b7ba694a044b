package legacy

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// digest combines the hashes of several files. The order does not matter, since a folder lists its files in any order.
type digest [sha256.Size]byte

func (d *digest) add(content []byte) {
	one := sha256.Sum256(content)
	for i := range d {
		d[i] ^= one[i]
	}
}

// stamp is the state of a legacy context's files. A write or a replacement changes it, as far as file times show.
type stamp struct{ digest }

func (s *stamp) add(name string, info fs.FileInfo) {
	s.digest.add(fmt.Appendf(nil, "%s\x00%d %d %d", name, vfs.Number(info), info.Size(), info.ModTime().UnixNano()))
}

// isNodeFile reports whether a name in the pool's folder is that of a node.
func isNodeFile(name string) bool {
	return strings.HasSuffix(name, nodeEnd) && !strings.HasPrefix(name, ".")
}
