package archive

import "github.com/ctxdir/ctxdir/internal/vfs"

func (p *Pack) ReadMessages(rows []Row) [][]byte {
	out := make([][]byte, len(rows))
	for i := range rows {
		out[i], _ = p.ReadMessage(rows[i])
	}
	return out
}

func Salvage(fsys vfs.FS, name string) (*Pack, error) { return Open(fsys, name) }
