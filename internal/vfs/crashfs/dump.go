package crashfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Dump lists the tree as the program sees it, a line per entry, for test messages. It marks what a crash may change:
// names that are not durable with "?", content with "~" and its durable size.
func (f *FS) Dump() string {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	var b strings.Builder
	dump(&b, f.d.root, "")
	return b.String()
}

func dump(b *strings.Builder, dir *inode, indent string) {
	for _, name := range slices.Sorted(maps.Keys(dir.entries)) {
		n := dir.entries[name]
		b.WriteString(indent + name)
		if n.dir {
			b.WriteString("/")
		} else {
			fmt.Fprintf(b, " %d", n.now.size)
		}
		if n.dirty() {
			fmt.Fprintf(b, " ~%d", n.contentAfter(Lose).size)
		}
		if dir.kept[name] != n {
			b.WriteString(" ?")
		}
		b.WriteString("\n")
		if n.dir {
			dump(b, n, indent+"  ")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dir.kept)) {
		if dir.entries[name] == nil {
			fmt.Fprintf(b, "%s%s gone ?\n", indent, name)
		}
	}
}
