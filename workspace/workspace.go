// Package workspace finds and makes the store of a project: the folder .ctxdir in the folder of the project. A
// workspace is a store like any other, with a file of instructions beside its contexts:
//
//	.ctxdir/ctxdir.json      configuration
//	.ctxdir/instructions.md  what every assembled context begins with
//	.ctxdir/CONTEXT/         conversations
//	.ctxdir/blobs/           artifacts: files and large texts of the conversations
//	.ctxdir/derived/         index and cache
//	.ctxdir/.gitignore       keeps all of it out of a repository
//
// Its API may change with any minor version; CHANGELOG.md says how.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
)

const (
	// Folder is the name of a workspace, in the folder of its project.
	Folder = ".ctxdir"
	// Instructions is the name of the file of instructions in a workspace.
	Instructions = "instructions.md"
	// MaxInstructions bounds the file of instructions, in bytes.
	MaxInstructions = 64 << 10
	// CacheSize is the setting of a new workspace, in bytes; see [ctxdir.Settings].
	CacheSize = 100_000_000
)

// ErrForeign reports a workspace that belongs to another user of the machine. Its owner can read what is stored
// there, and writes what an agent reads from it.
var ErrForeign = errors.New("the workspace belongs to another user")

// Find returns the path of the nearest workspace in dir or above it, "" if there is none. Find executes nothing and
// opens no file. It fails with [ErrForeign] if the folder, or the link to it, is not the user's own; under sudo, the
// user is also the one who called it. On Windows, Find does not compare owners.
func Find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, Folder)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if err := check(path, info); err != nil {
				return "", err
			}
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
		dir = filepath.Dir(dir)
	}
}

// check fails if a folder, or the link to it, is not the user's own.
func check(path string, folder fs.FileInfo) error {
	link, err := os.Lstat(path)
	if err == nil && (!owned(folder) || !owned(link)) {
		err = fmt.Errorf("%s: %w", path, ErrForeign)
	}
	return err
}

// gitIgnore keeps conversations out of a repository: they may hold secrets.
const gitIgnore = `# Conversations may hold secrets, so git ignores all of them. To share them, replace the last line by
# these: /locks/ /staging/ /derived/ /summaries.changes /summaries.jsonl, each on a line.
*
`

// Init makes a workspace in the folder of a project, unless there is one, and opens it. It adds a missing file of
// instructions, and changes nothing else in an existing store. It fails with [ErrForeign] as Find does.
func Init(ctx context.Context, project string, opts ...ctxdir.Options) (*ctxdir.Store, error) {
	dir := filepath.Join(project, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err == nil {
		err = check(dir, info)
	}
	if err != nil {
		return nil, err
	}
	_, err = root.Lstat("ctxdir.json")
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		if err := writeNew(root, ".gitignore", gitIgnore); err != nil {
			return nil, err
		}
	}
	s, err := ctxdir.Init(dir, opts...)
	if err != nil {
		return nil, err
	}
	if made {
		err = s.Configure(ctx, func(s *ctxdir.Settings) error {
			s.StorageMode, s.Extraction = ctxdir.StorageLocal, ctxdir.ExtractLocal
			s.CacheSize, s.MaxTokens = CacheSize, ctxdir.DefaultMaxTokens
			return nil
		})
	}
	if err == nil {
		err = writeNew(root, Instructions, "")
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// writeNew writes a file, unless it is there.
func writeNew(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// ReadInstructions returns the instructions of a workspace, without white space around them: "" if there are none. It
// fails if the file is not a regular one, if it has more than [MaxInstructions] bytes, or if it is not valid UTF-8.
func ReadInstructions(s *ctxdir.Store) (text string, err error) {
	root, err := os.OpenRoot(s.Info().Path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	info, err := root.Lstat(Instructions)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var b []byte
	if err == nil {
		b, err = read(root)
	}
	if err == nil && !utf8.Valid(b) {
		err = errors.New("not valid UTF-8")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Join(s.Info().Path, Instructions), err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(b), "\ufeff")), nil
}

// read reads the file of instructions. A FIFO that takes its place meanwhile does not block.
func read(root *os.Root) ([]byte, error) {
	f, err := root.OpenFile(Instructions, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxInstructions+1))
	if err == nil && len(b) > MaxInstructions {
		err = fmt.Errorf("%w: it exceeds the limit of %d bytes", ctxdir.ErrTooLarge, MaxInstructions)
	}
	return b, err
}
