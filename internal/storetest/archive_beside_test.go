package storetest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

var archivingCycles = flag.Int("archiving.cycles", 3, "how often all is archived and taken out again while others read")

const (
	besideMain = 50 // messages that are on main from the beginning
	besideFork = 25 // of those are on alt too
	besideAlt  = 15 // on alt alone
)

// besideBody is version v of message n: some have payloads in the log, some have larger ones.
func besideBody(n, v int) string {
	size := 4 + n%5
	switch {
	case n%30 == 7:
		size = 12_000
	case n%10 == 3:
		size = 500
	}
	return fmt.Sprintf(`{"n":%d,"v":%d,"text":%q}`, n, v, strings.Repeat(fmt.Sprintf("%d.%d ", n, v), size))
}

// besideID is the message at a position of a branch, 0 where that is not known beforehand.
func besideID(alt bool, at int) int {
	switch {
	case at < besideFork || !alt && at < besideMain:
		return at + 1
	case alt && at < besideFork+besideAlt:
		return 1000 + at - besideFork
	}
	return 0
}

// wholeBeside reports an error unless a message is one of ours, in one of its versions.
func wholeBeside(m *engine.Message, alt bool, at int) error {
	var told struct{ N, V int }
	body, err := m.Body(context.Background())
	if m.Unavailable == nil && err == nil {
		err = json.Unmarshal(body, &told)
	}
	want := besideID(alt, at)
	if m.Unavailable != nil || err != nil || m.Edited || m.Position != int64(at) || m.ID != kit.TestID(told.N) ||
		want != 0 && told.N != want || string(body) != besideBody(told.N, told.V) {
		return fmt.Errorf("alt %v, position %d: %s at %d, unavailable %w, edited %v, %.60q, %w",
			alt, at, m.ID, m.Position, m.Unavailable, m.Edited, body, err)
	}
	return nil
}

// besideBranches are main and alt, by whatever name that goes.
func besideBranches(c *engine.Context) (main, alt *engine.Branch, err error) {
	for _, info := range c.Metadata().Branches {
		b, err := c.Branch(info.Name)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case info.Name == "main":
			main = b
		case strings.HasPrefix(info.Name, "alt"):
			alt = b
		}
	}
	if main == nil || alt == nil {
		return nil, nil, errors.New("main or alt is missing")
	}
	return main, alt, nil
}

// besideReaders read a branch, each in its way. They begin elsewhere each round.
var besideReaders = map[string]func(b *engine.Branch, alt bool, round int) error{
	"all": func(b *engine.Branch, alt bool, _ int) error {
		at := 0
		for m, err := range b.Messages(context.Background()) {
			if err == nil {
				err = wholeBeside(m, alt, at)
			}
			if err != nil {
				return err
			}
			at++
		}
		if besideID(alt, at) != 0 {
			return fmt.Errorf("it ends at position %d", at)
		}
		return nil
	},
	"range": func(b *engine.Branch, alt bool, round int) error {
		for at := round % 7; besideID(alt, at) != 0; at += 7 {
			some, err := b.Range(context.Background(), int64(at), int64(at)+3)
			for i, m := range some {
				if err == nil {
					err = wholeBeside(m, alt, at+i)
				}
			}
			if err != nil || len(some) == 0 {
				return fmt.Errorf("from %d: %d messages, %w", at, len(some), err)
			}
		}
		return nil
	},
	"id": func(b *engine.Branch, alt bool, round int) error {
		for at := round % 3; besideID(alt, at) != 0; at += 3 {
			m, err := b.Message(context.Background(), kit.TestID(besideID(alt, at)))
			if err == nil {
				err = wholeBeside(m, alt, at)
			}
			if err != nil {
				return fmt.Errorf("position %d: %w", at, err)
			}
		}
		return nil
	},
}

// readBeside reads in one way until stop, and a few times in any case. With refresh it looks what others did before
// each round. An alt that gets another name meanwhile is not read through a handle that others refresh.
func readBeside(c *engine.Context, way string, refresh, shared bool, stop *atomic.Bool) (rounds int, err error) {
	main, alt, err := besideBranches(c)
	for ; err == nil && (rounds < 3 || !stop.Load()); rounds++ {
		if refresh {
			if err = c.Refresh(context.Background()); err == nil {
				main, alt, err = besideBranches(c)
			}
		}
		if err == nil {
			err = besideReaders[way](main, false, rounds)
		}
		if err == nil && !shared {
			err = besideReaders[way](alt, true, rounds)
		}
	}
	if err != nil {
		err = fmt.Errorf("reading by %s, refreshed %v, round %d: %w", way, refresh, rounds, err)
	}
	return rounds, err
}

func openBeside(dir string, id uuid.UUID) (*engine.Store, *engine.Context, error) {
	s, err := kit.Open(dir, engine.WithPool(16<<10), engine.WithSealBytes(40_000))
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Context(context.Background(), id)
	return s, c, err
}

// readAllBeside starts readers of every way, each through a handle of its own or, all of them, through a common one.
func readAllBeside(dir string, id uuid.UUID, stop *atomic.Bool) (wait func() (rounds int, err error), err error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var total int
	var failed []error
	read := func(c *engine.Context, way string, refresh bool) {
		group.Go(func() {
			n, err := readBeside(c, way, refresh, false, stop)
			mu.Lock()
			defer mu.Unlock()
			total += n
			if err != nil {
				failed = append(failed, err)
				stop.Store(true)
			}
		})
	}
	stale, common, err := openBeside(dir, id)
	if err != nil {
		return nil, err
	}
	stores, contexts := []*engine.Store{stale}, []*engine.Context{common}
	for way := range besideReaders {
		s, c, err := openBeside(dir, id)
		if err != nil {
			return nil, err
		}
		stores, contexts = append(stores, s), append(contexts, c)
		main, _, err := besideBranches(c)
		if err == nil {
			err = besideReaders[way](main, false, 0) // it knows what is there now
		}
		if err != nil {
			return nil, err
		}
		read(c, way, true)
		read(common, way, false)
	}
	return func() (int, error) {
		group.Wait()
		for i := range stores {
			failed = append(failed, contexts[i].Close(), stores[i].Close())
		}
		return total, errors.Join(failed...)
	}, nil
}

// readerProcess is a process that reads until its input ends.
func readerProcess(dir, id string) error {
	var stop atomic.Bool
	wait, err := readAllBeside(dir, uuid.MustParse(id), &stop)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop.Store(true)
	rounds, err := wait()
	fmt.Println(rounds)
	return err
}

// besideWriter appends, replaces, forks and renames, n times or until stop, but each at least once.
func besideWriter(c *engine.Context, n int, stop *atomic.Bool) (versions map[int]int, appended int, err error) {
	ctx := context.Background()
	versions = map[int]int{}
	for i := 0; err == nil && i < n && (i < 5 || !stop.Load()); i++ {
		main, alt, berr := besideBranches(c)
		if berr != nil {
			return versions, appended, berr
		}
		next := 2000 + appended
		if _, err = main.Append(ctx, engine.Draft{ID: kit.TestID(next), Body: []byte(besideBody(next, 0))}); err == nil {
			appended++
		}
		if at := (i * 11) % besideMain; err == nil {
			versions[at+1]++
			err = main.Replace(ctx, kit.TestID(at+1), engine.Draft{Body: []byte(besideBody(at+1, versions[at+1]))}, engine.Shared())
		}
		switch {
		case err != nil:
		case i%5 == 1:
			_, err = alt.Fork(ctx, fmt.Sprint("fork ", i), int64(i%besideFork))
		case i%5 == 3:
			err = c.Rename(ctx, alt.Name(), fmt.Sprint("alt", i))
		}
	}
	return versions, appended, err
}

// TestReadingWhileArchiving: others archive and unarchive all, in turns, while readers read every message in every way,
// through handles that were opened before, in this process and in another one, and one appends, replaces, forks and
// renames. No message is ever missing or another one.
func TestReadingWhileArchiving(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	s := kit.Must[*engine.Store](t)(kit.Init(dir, engine.WithTextThreshold(1<<10)))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	for at := range besideMain {
		if at == besideFork {
			kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", besideFork))
		}
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(at + 1), Body: []byte(besideBody(at+1, 0))})
	}
	alt := kit.Must[*engine.Branch](t)(c.Branch("alt"))
	for n := 1000; n < 1000+besideAlt; n++ {
		kit.Append(t, alt, engine.Draft{ID: kit.TestID(n), Body: []byte(besideBody(n, 0))})
	}
	kit.Check(t, c.Seal(ctx))

	cmd := exec.Command(os.Args[0], c.ID().String())
	cmd.Env = append(os.Environ(), "CTXDIR_READER="+dir)
	cmd.Stderr = os.Stderr
	in := kit.Must[io.WriteCloser](t)(cmd.StdinPipe())
	out := bufio.NewReader(kit.Must[io.ReadCloser](t)(cmd.StdoutPipe()))
	kit.Check(t, cmd.Start())
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	var stop atomic.Bool
	wait := kit.Must[func() (int, error)](t)(readAllBeside(dir, c.ID(), &stop))
	archives, archiver, err := openBeside(dir, c.ID())
	kit.Check(t, err)
	defer archives.Close()
	defer archiver.Close()
	var group sync.WaitGroup
	var versions map[int]int
	var appended int
	var wrote error
	group.Go(func() { versions, appended, wrote = besideWriter(c, 20*(*archivingCycles), &stop) })
	group.Go(func() { // through the handle that archives
		if _, err := readBeside(archiver, "all", false, true, &stop); err != nil {
			t.Error(err)
		}
	})
	moved := int64(0)
	for i := range *archivingCycles {
		for _, do := range []func() (archiving.Result, error){
			func() (archiving.Result, error) { return kit.Archive(ctx, archiver, archiving.Options{}) },
			func() (archiving.Result, error) { return archiving.Unarchive(ctx, archiver, nil) },
			func() (archiving.Result, error) {
				_, b, err := besideBranches(archiver)
				if err != nil {
					return archiving.Result{}, err
				}
				return kit.Archive(ctx, archiver, archiving.Options{Branch: b.Name()})
			},
			func() (archiving.Result, error) { return kit.Archive(ctx, archiver, archiving.Options{}) },
		} {
			if stop.Load() {
				break
			}
			done, err := do()
			if err != nil && !errors.Is(err, engine.ErrNotExist) { // the branch may have been renamed meanwhile
				t.Errorf("cycle %d: %+v, %v", i, done, err)
			}
			moved += done.Messages
		}
	}
	stop.Store(true)
	group.Wait()
	kit.Check(t, wrote, in.Close())
	rounds, err := wait()
	kit.Check(t, err)
	others, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the other process: %v", err)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(others))); err != nil || n == 0 || moved == 0 || appended == 0 {
		t.Fatalf("%d messages were moved, %d appended, the other process read %q times, %v", moved, appended, others, err)
	}
	t.Logf("%d messages moved, %d appended, %d rounds here, %s elsewhere", moved, appended, rounds, strings.TrimSpace(string(others)))

	kit.Check(t, c.Refresh(ctx))
	main, _, err := besideBranches(c)
	kit.Check(t, err)
	all := kit.Load(t, main)
	if len(all) != besideMain+appended {
		t.Fatalf("%d messages, wanted %d", len(all), besideMain+appended)
	}
	for at, m := range all {
		n := at + 1
		if at >= besideMain {
			n = 2000 + at - besideMain
		}
		if m.Unavailable != nil || kit.BodyOf(m) != besideBody(n, versions[n]) {
			t.Errorf("position %d: version %d was acknowledged, it is %.60s, %v", at, versions[n], kit.BodyOf(m), m.Unavailable)
		}
	}
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		if err != nil || f.Severity != integrity.SeverityInfo {
			t.Errorf("a check finds %+v, %v", f, err)
		}
	}
	fork := func(b ctxfolder.Branch) bool { return strings.HasPrefix(b.Name, "fork") }
	if names := c.Metadata().Branches; !slices.ContainsFunc(names, fork) {
		t.Errorf("nothing was forked: %v", names)
	}
}
