package reference

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	gitTime   = 5 * time.Second // for all that one call of this package asks git
	gitOutput = 64 << 20        // bytes of one answer
	maxNames  = 500             // of commits and files in one question
)

// git asks the git command about the repository of a folder. Nothing that comes from a reference becomes an option or a
// pattern of git: hashes are hexadecimal digits, and paths are read from stdin or follow "--".
type git struct {
	ctx     context.Context
	dir     string
	head    string // the commit that is checked out; "" before the first one
	branch  string // "" for none
	digits  int    // of a hash
	shallow bool
}

// openGit looks for the repository of a folder. The error says why there is none.
func openGit(ctx context.Context, dir string) (*git, error) {
	g := &git{ctx: ctx, dir: dir}
	out, err := g.run(nil, "rev-parse", "--is-inside-work-tree", "--is-shallow-repository", "--show-object-format")
	facts := strings.Fields(string(out))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("git is not installed")
	case err != nil && strings.Contains(err.Error(), "not a git repository"):
		return nil, errors.New("the workspace is not a git repository")
	case err != nil:
		return nil, err
	case len(facts) != 3 || facts[0] != "true":
		return nil, errors.New("the workspace is not a git working tree")
	}
	g.shallow, g.digits = facts[1] == "true", 40
	if facts[2] == "sha256" {
		g.digits = 64
	}
	// Both fail before the first commit, and the second one without a branch.
	if out, err := g.run(nil, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
		if head := strings.TrimSpace(string(out)); head != "" && isHash(head) {
			g.head = head
		}
	}
	if out, err := g.run(nil, "symbolic-ref", "--short", "--quiet", "HEAD"); err == nil {
		g.branch = strings.TrimSpace(string(out))
	}
	return g, nil
}

// Repository returns the address of the remote "origin" of the repository in which a folder is; it is empty if there is none.
func Repository(ctx context.Context, dir string) string {
	g := &git{ctx: ctx, dir: dir}
	out, err := g.run(nil, "config", "--get", "remote.origin.url")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// command prepares a git command that runs no program, never prompts, takes no lock and fetches nothing.
func (g *git) command(args ...string) *exec.Cmd {
	fixed := []string{
		"--literal-pathspecs", "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false",
		"-c", "log.showSignature=false",
	}
	cmd := exec.CommandContext(g.ctx, "git", append(fixed, args...)...)
	cmd.Dir, cmd.WaitDelay = g.dir, time.Second
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "GIT_") || name == "GIT_CEILING_DIRECTORIES" || strings.HasPrefix(name, "GIT_CONFIG_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
	return cmd
}

// run returns what a command of git prints.
func (g *git) run(stdin []byte, args ...string) ([]byte, error) {
	var out, problem limited
	out.limit, problem.limit = gitOutput, 4<<10
	cmd := g.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &problem
	err := cmd.Run()
	switch {
	case g.ctx.Err() != nil:
		return nil, errors.New("git did not answer in time")
	case out.full:
		return nil, fmt.Errorf("the output of git %s exceeds the limit of %d MiB", args[0], gitOutput>>20)
	case err != nil && problem.Len() > 0:
		line, _, _ := strings.Cut(strings.TrimSpace(problem.String()), "\n")
		return nil, fmt.Errorf("git %s: %s", args[0], cut(strings.TrimPrefix(line, "fatal: "), 300))
	case err != nil:
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.Bytes(), nil
}

// limited is a buffer that takes no more than a limit.
type limited struct {
	bytes.Buffer
	limit int
	full  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.limit {
		l.full = true
		return 0, io.ErrShortBuffer
	}
	return l.Buffer.Write(p)
}

// objects reads files of the past, through one process.
type objects struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (g *git) objects() (*objects, error) {
	o := &objects{cmd: g.command("cat-file", "--batch")}
	var err error
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.out = bufio.NewReaderSize(out, 64<<10)
	if err := o.cmd.Start(); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *objects) Close() error {
	_ = o.in.Close()
	_, _ = io.Copy(io.Discard, o.out)
	return o.cmd.Wait()
}

// read returns a file and its hash: by a hash, or as a commit has it. It returns nil if the repository does not have it,
// or if it is too large.
func (o *objects) read(name string) (c *content, blob string, err error) {
	if _, err := io.WriteString(o.in, name+"\n"); err != nil {
		return nil, "", err
	}
	head, err := o.out.ReadString('\n')
	if err != nil {
		return nil, "", err
	}
	words := strings.Fields(head)
	if len(words) != 3 || strings.HasSuffix(head, " missing\n") {
		return nil, "", nil
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return nil, "", err
	}
	if words[1] != "blob" || size > maxContent {
		_, err := io.CopyN(io.Discard, o.out, size+1)
		return nil, "", err
	}
	b := make([]byte, size+1) // with the line break after it
	if _, err := io.ReadFull(o.out, b); err != nil {
		return nil, "", err
	}
	return newContent(b[:size]), words[0], nil
}

// inCommit names the file that a commit has at a path of the workspace.
func inCommit(commit, file string) string { return commit + ":./" + file }

// tracked returns the files of the index with their hashes, and the files that git does not know.
func (g *git) tracked() (blobs map[string][]string, names map[string][]string, others []string) {
	blobs, names = map[string][]string{}, map[string][]string{}
	out, _ := g.run(nil, "ls-files", "--stage", "-z")
	for entry := range strings.SplitSeq(string(out), "\x00") {
		head, name, ok := strings.Cut(entry, "\t")
		words := strings.Fields(head)
		if ok && len(words) == 3 && validFile(name) {
			blobs[words[1]] = append(blobs[words[1]], name)
			names[path.Base(name)] = append(names[path.Base(name)], name)
		}
	}
	out, _ = g.run(nil, "ls-files", "--others", "--exclude-standard", "-z")
	for name := range strings.SplitSeq(string(out), "\x00") {
		if validFile(name) && len(others) < maxFiles {
			others = append(others, name)
		}
	}
	return blobs, names, others
}

// renames returns the new names of files that were renamed between a commit and the index.
func (g *git) renames(commit string) (map[string]string, error) {
	out, err := g.run(nil, "diff", "--cached", "--name-status", "-z", "-M", "-l0", "--diff-filter=R", "--relative", "--no-ext-diff",
		"--no-textconv", "--ignore-submodules", "--end-of-options", commit, "--")
	if err != nil {
		return nil, err
	}
	renames := map[string]string{}
	for words := strings.Split(string(out), "\x00"); len(words) >= 3; words = words[3:] {
		renames[words[1]] = words[2]
	}
	return renames, nil
}

// contains reports whether the commit that is checked out has another one in its history, and whether the repository has
// that one at all.
func (g *git) contains(commit string) (contains, known bool) {
	_, err := g.run(nil, "merge-base", "--is-ancestor", "--end-of-options", commit, "HEAD")
	var status *exec.ExitError
	return err == nil, err == nil || errors.As(err, &status)
}

// deletion is the commit that removed a file.
type deletion struct {
	commit, parent string
	at             time.Time
}

// deletions returns the newest commits that removed files.
func (g *git) deletions(files []string) map[string]deletion {
	in := "HEAD\n--\n" + strings.Join(files, "\n") + "\n"
	out, err := g.run([]byte(in), "log", "--diff-filter=D", "--no-renames", "--name-only", "--relative", "-z", "--no-ext-diff",
		"--no-textconv", "--ignore-submodules", "--format=%x01%H %ct %P", "--stdin")
	if err != nil {
		return nil
	}
	all := map[string]deletion{}
	for part := range strings.SplitSeq(string(out), "\x01") {
		head, names, ok := strings.Cut(part, "\x00")
		words := strings.Fields(head)
		if !ok || len(words) < 3 {
			continue
		}
		seconds, _ := strconv.ParseInt(words[1], 10, 64)
		for name := range strings.SplitSeq(names, "\x00") {
			name = strings.TrimPrefix(name, "\n")
			if _, known := all[name]; !known && name != "" {
				all[name] = deletion{words[0], words[2], time.Unix(seconds, 0).UTC()}
			}
		}
	}
	return all
}
