package migrate

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// stager makes a context of a legacy one in staging/ of a store.
type stager struct {
	to       *engine.Store
	src      *legacy.File
	id       uuid.UUID
	at       time.Time // last change of the legacy context
	path     string    // of the legacy context
	durable  bool
	progress func(read int64)

	m      *engine.Metadata
	plan   []legacy.Line
	names  branchNames
	staged vfs.FS
	small  map[blob.Sum]bool // payloads that were put without a sync
	read   int64
}

func (g *stager) run(ctx context.Context) error {
	now := index.Now()
	if g.at = g.at.UTC().Truncate(time.Microsecond); g.at.After(now) || g.at.Unix() < 0 {
		g.at = now
	}
	g.plan, g.small = g.src.Plan(), map[blob.Sum]bool{}
	if err := g.metadata(ctx); err != nil {
		return err
	}
	folder := ctxfolder.StagingFolder(g.id)
	if err := vfs.RemoveAll(g.to.FS, folder); err != nil {
		return err
	}
	for _, dir := range []string{folder, folder + "/" + ctxfolder.Messages} {
		if err := g.to.FS.Mkdir(dir); err != nil {
			return err
		}
	}
	var err error
	if g.staged, err = g.to.FS.Sub(folder); err != nil {
		return err
	}
	defer g.staged.Close()
	built, err := index.Build(index.FolderOf(g.to.ID(), g.id, g.staged), g.m)
	if err != nil {
		return err
	}
	defer built.Abort()
	for i := range g.plan {
		if err := g.line(ctx, i, built); err != nil {
			return err
		}
	}
	if err := built.Finish(); err != nil {
		return err
	}
	encoded, err := g.m.Encode()
	if err != nil {
		return err
	}
	if err := vfs.WriteSynced(g.staged, ctxfolder.MetadataFile, encoded); err != nil || !g.durable {
		return err
	}
	return g.to.SyncStaged(g.id, g.small)
}

// metadata makes the metadata, with a line and a branch for each line of the plan.
func (g *stager) metadata(ctx context.Context) error {
	g.m = &engine.Metadata{ID: g.id, CreatedAt: g.at, UpdatedAt: g.at, Revision: 1}
	g.names = branchNames{branch.AddMany(g.m), map[string]int{}}
	from := &Origin{
		format:  g.src.Format,
		path:    g.path,
		sum:     hex.EncodeToString(g.src.Digest[:]),
		members: g.src.Members,
		prompt:  g.src.Prompt,
	}
	active := g.src.Members.Get("active_branch_name")
	lines := map[string]uuid.UUID{} // of the branches that kept their names
	for i, l := range g.plan {
		if err := ctx.Err(); err != nil {
			return err
		}
		want, of := Unlisted, &BranchOrigin{Unlisted: int64(len(l.Items))}
		if l.Branch != legacy.Unlisted {
			b := &g.src.Branches[l.Branch]
			want, _ = legacy.Text(b.Name)
			of = &BranchOrigin{name: b.Name, members: b.Members, missing: b.Missing, twin: lines[string(b.Name)]}
		}
		added, err := g.add(g.names.name(want))
		if err != nil {
			return err
		}
		if l.Parent >= 0 {
			at := &g.m.Lines[len(g.m.Lines)-1]
			at.Parent, at.Base = g.m.Lines[l.Parent].ID, int64(l.Base)
		}
		if err := g.branch(ctx, added, of); err != nil {
			return err
		}
		if of.name != nil && added.Name == want {
			lines[string(of.name)] = added.Line
		}
		if i == 0 || of.name != nil && legacy.Equal(active, of.name) {
			g.m.ActiveBranch = added.Name
		}
	}
	if len(g.m.Branches) == 0 {
		added, err := g.add(engine.MainBranch)
		if err != nil {
			return err
		}
		g.m.ActiveBranch = engine.MainBranch
		(&BranchOrigin{Made: true}).keep(added)
	}
	return from.keep(g.m)
}

func (g *stager) add(name string) (*ctxfolder.Branch, error) {
	line, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	return g.names.Add(name, line)
}

// branch keeps what a legacy branch has other than its list.
func (g *stager) branch(ctx context.Context, b *ctxfolder.Branch, of *BranchOrigin) error {
	prompt := of.takePrompt()
	of.keep(b)
	if prompt == nil {
		return nil
	}
	blobs := engine.BlobHold{Store: g.to}
	defer blobs.Release()
	var err error
	b.SystemPrompt, err = g.to.ExternalisePrompt(json.RawMessage(prompt), func() error { return blobs.Hold(ctx) })
	return err
}

// names finds valid branch names.
type branchNames struct {
	*branch.Many
	numbers map[string]int // the last number of each stem
}

// name returns a free name like the wanted one.
func (n *branchNames) name(want string) string {
	if n.Free(want) {
		return want
	}
	stem := "branch"
	if _, err := branch.Folder(want); err == nil {
		stem = want
	}
	for len(stem) > 60 { // with a number it must stay short enough, in any encoding
		stem = string([]rune(stem)[:len([]rune(stem))/2])
	}
	for at := max(n.numbers[stem], 1) + 1; ; at++ {
		if name := fmt.Sprintf("%s-%d", stem, at); n.Free(name) {
			n.numbers[stem] = at
			return name
		}
	}
}

func (g *stager) line(ctx context.Context, i int, built *index.Builder) error {
	l, line := &g.plan[i], &g.m.Lines[i]
	if len(l.Items) == 0 {
		return nil
	}
	path := ctxfolder.Messages + "/" + line.Folder
	if err := g.staged.Mkdir(path); err != nil {
		return err
	}
	folder, err := g.staged.Sub(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	prev, err := g.before(i)
	if err != nil {
		return err
	}
	for k, it := range l.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, err := g.src.ID(g.id, it)
		if err != nil {
			return err
		}
		env := &message.Envelope{ID: id, Line: line.ID, Position: line.Base + int64(k), Prev: prev, StoredAt: g.at, Branch: g.m.Branches[i].Name}
		if err := g.message(it, env); err != nil {
			return fmt.Errorf("message %d of branch %q: %w", env.Position, env.Branch, err)
		}
		raw := env.AppendTo(nil)
		if err := vfs.CreateFile(folder, ctxfolder.MessageFile(id), append(raw, '\n'), g.at); err != nil {
			return err
		}
		if err := built.Add(index.EntryOf(env, raw), raw); err != nil {
			return err
		}
		if g.read += int64(len(raw)); g.progress != nil {
			g.progress(g.read)
		}
		prev = id
	}
	return nil
}

// before returns the id of the message before a line's own first one.
func (g *stager) before(i int) (uuid.UUID, error) {
	position := g.plan[i].Base - 1
	if position < 0 {
		return uuid.Nil, nil
	}
	for i = g.plan[i].Parent; g.plan[i].Base > position; i = g.plan[i].Parent {
	}
	return g.src.ID(g.id, g.plan[i].Items[position-g.plan[i].Base])
}

// message fills an envelope and stores the payloads.
func (g *stager) message(it legacy.Item, env *message.Envelope) error {
	origin, body, err := g.src.Take(it.Node, env.ID)
	if err != nil {
		return err
	}
	d := engine.PendingMessage{Draft: engine.Draft{Body: body, Source: origin.Source()}}
	d.Role, d.Type, d.CreatedAt = legacy.Describe(body)
	if err := g.to.Complete(&d, g.to.TextThreshold(), func() error { return nil }); err != nil {
		return err
	}
	for _, p := range d.Payloads {
		sum, _, err := g.to.Blobs.PutUnsynced(p.Payload)
		if err != nil {
			return err
		}
		g.small[sum] = true
	}
	env.Role, env.Type, env.CreatedAt, env.Source, env.Body, env.Payloads = d.Role, d.Type, d.CreatedAt, d.Source, d.Stored, d.Refs
	if origin.Key != nil {
		env.OriginID, _ = legacy.Text(origin.Key)
	}
	return nil
}
