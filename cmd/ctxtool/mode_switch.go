package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type switchedRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	State    string `json:"state"` // pending, sent, confirmed or cleaned
	Messages int64  `json:"messages"`
	Digest   string `json:"digest,omitempty"`
}

type switchSummary struct {
	Record    string `json:"record"`
	Mode      string `json:"mode"`
	Contexts  int    `json:"contexts"`
	Messages  int64  `json:"messages"`
	Pending   int    `json:"pending"` // and those that were only sent
	Confirmed int    `json:"confirmed"`
	Cleaned   int    `json:"cleaned"`
	// Lines of files that messages copy, on the way back: those that are references now, and those that no file has.
	References int64 `json:"references"`
	Copies     int64 `json:"copies"`
}

// switching is one run of mode switch.
type switching struct {
	app     *app
	s       *ctxdir.Store
	local   *replica.Folder
	remote  replica.Peer
	mode    string
	refs    []string // the contexts, all if it is empty
	project string
	clean   bool
	dryRun  bool
	sum     switchSummary
	failed  error // of printing
}

func (a *app) modeSwitchCmd() *cobra.Command {
	var to string
	var w switching
	cmd := &cobra.Command{
		Use:   "switch server|local [CONTEXT…] [--project PROJECT]",
		Short: "Move conversations to a server, or back to this machine",
		Long: `Move all conversations, those of a project, or some, and then set the mode.

  server  push them. A context is confirmed when the server has read back what
          it stored, with the digest of this store. --clean then moves it to
          the trash here: until "mode switch local", only the server has it
  local   fetch them, and compare likewise. Where files of a project here still
          have lines that messages copy, these get references to them. --clean
          then moves the contexts to the trash of the server, and those of your
          other machines follow

If it is interrupted, run it again. The mode changes once every context is confirmed, and nothing is
cleaned up before. PEER is the server: what sync takes with --to. With one remote, it can be left out.`,
		Example: "  ctxtool mode switch server --to ~/copy --dry-run\n  ctxtool mode switch server --to ~/copy --clean\n" +
			"  ctxtool mode switch local --to ~/copy --project ~/walk",
		Annotations: exits("some contexts are not confirmed, or not cleaned up", ofStores...),
		Args:        between(1, -1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return modes, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeContexts(-1)(cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.mode, w.refs = args[0], args[1:]; !slices.Contains(modes, w.mode) {
				return usage(cmd, "%q is not one of: local, server", w.mode)
			}
			if len(w.refs) > 0 && w.project != "" {
				return usage(cmd, "CONTEXT and --project cannot be used together")
			}
			w.project = projectPath(w.project)
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				remotes, err := remotesOf(s, to)
				switch {
				case err != nil:
					return err
				case len(remotes) == 0:
					return usage(cmd, "the server is missing: pass it with --to, or name it with ctxtool remote")
				case len(remotes) > 1:
					return usage(cmd, "there are several remotes: pass the server with --to")
				}
				saveMemory()
				w.app, w.s, w.local = a, s, replica.NewFolder(s)
				return w.run(cmd.Context(), remotes[0])
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the server is `PEER`")
	cmd.Flags().StringVar(&w.project, "project", "", "only contexts of the project in the folder `PROJECT`")
	cmd.Flags().BoolVar(&w.clean, "clean", false, "move confirmed contexts to the trash of the side that gives them up")
	cmd.Flags().BoolVar(&w.dryRun, "dry-run", false, "report what would be done, and change nothing")
	return cmd
}

// run connects to the server and switches. An interrupted run left nothing that the next one does not find.
//
// Crash order: contexts are confirmed, then the mode changes, then they are cleaned up. After each step, the next run goes on.
func (w *switching) run(ctx context.Context, r ctxdir.Remote) error {
	pull := w.mode == ctxdir.StorageLocal
	r.Store = uuid.Nil // it may be another store than before
	c, err := w.app.connect(ctx, r, &replica.Options{DryRun: w.dryRun, Pull: pull && !w.clean})
	if err != nil {
		return err
	}
	w.remote = c.peer
	w.sum = switchSummary{Record: "summary", Mode: w.mode}
	err = w.work(ctx, pull)
	if err == nil && !w.dryRun {
		err = w.app.remember(ctx, w.s, c)
	}
	return closeAfter(c.end, err)
}

func (w *switching) work(ctx context.Context, pull bool) error {
	ids, rules, err := w.contexts(ctx, pull)
	if err != nil {
		return err
	}
	o := replica.SwitchOptions{DryRun: w.dryRun, Pull: pull, Host: w.app.env("CTXDIR_HOST")}
	left, err := w.step(comparing, &o, func() (int, error) { return replica.Confirm(ctx, w.local, w.remote, ids, o) })
	switch {
	case err != nil:
		return err
	case w.dryRun:
		return w.finish(0)
	case left > 0:
		return w.finish(left)
	}
	if err := setModes(ctx, w.s, rules); err != nil {
		return err
	}
	if w.clean {
		left, err = w.step("Cleaning up", &o, func() (int, error) { return replica.CleanUp(ctx, w.local, w.remote, ids, !pull, o) })
		if err != nil {
			return err
		}
	}
	if pull {
		err = w.keepReferences(ctx, ids)
	}
	return errors.Join(err, w.finish(left))
}

// comparing is what the first step does.
const comparing = "Comparing"

// step runs a step with a progress bar, and prints what becomes of contexts.
func (w *switching) step(label string, o *replica.SwitchOptions, do func() (int, error)) (left int, err error) {
	bar := w.app.newProgress(label)
	short := shortIDsIn(w.s)
	o.Progress = func(done, of int) { bar.Items("contexts", done, of) }
	o.Report = func(x replica.Switched) {
		bar.Clear()
		if x.Err != nil {
			w.app.warn(errorRecord{Error: fmt.Sprintf("context %s: %v", x.ID, x.Err)})
		}
		switch x.State {
		case replica.SwitchCleaned:
			w.sum.Cleaned++
		case replica.SwitchConfirmed:
			w.sum.Confirmed++
			fallthrough
		default:
			w.sum.Contexts++
			w.sum.Messages += x.Messages
		}
		if w.clean && x.State == replica.SwitchConfirmed && !w.app.json && x.Err == nil && label == comparing {
			return // the clean-up follows
		}
		r := switchedRecord{"switched", x.ID.String(), string(x.State), x.Messages, x.Digest}
		if err := w.app.result(r, "%s  %-9s  %s", short.of(x.ID), x.State, plain.Count(x.Messages, "message")); err != nil && w.failed == nil {
			w.failed = err
		}
	}
	left, err = do()
	bar.Clear()
	return left, errors.Join(err, w.failed)
}

// finish prints the summary. left are the contexts that are not done.
func (w *switching) finish(left int) error {
	a := w.app
	w.sum.Pending = w.sum.Contexts - w.sum.Confirmed
	if a.json {
		if err := a.record(w.sum); err != nil {
			return err
		}
	}
	switch {
	case w.dryRun:
		a.note("would switch %s to %s", plain.Count(w.sum.Contexts, "context"), w.mode)
		return nil
	case w.sum.Pending > 0:
		return problems("run it again", "%d of %s are not confirmed: the mode stays", w.sum.Pending, plain.Count(w.sum.Contexts, "context"))
	case left > 0:
		return problems("run it again", "%d of %s are not cleaned up", left, plain.Count(w.sum.Contexts, "context"))
	}
	if w.sum.References+w.sum.Copies > 0 {
		a.note("%s to lines of files stored; %s of files stay copies",
			plain.Count(w.sum.References, "reference"), plain.Count(w.sum.Copies, "part"))
	}
	a.note("%s: %s", w.mode, plain.Count(w.sum.Contexts, "context"))
	return nil
}

// contexts returns the contexts to switch, and the modes that they get.
func (w *switching) contexts(ctx context.Context, pull bool) (ids []uuid.UUID, rules []ctxdir.Mode, err error) {
	if len(w.refs) > 0 {
		for _, ref := range w.refs {
			id, err := w.app.heldContext(w.s, ref)
			if err != nil {
				return nil, nil, err
			}
			ids, rules = append(ids, id), append(rules, ctxdir.Mode{Context: id, Mode: w.mode})
		}
		return ids, rules, nil
	}
	rules = []ctxdir.Mode{{Project: w.project, Mode: w.mode}}
	set, err := w.s.Settings()
	if err != nil {
		return nil, nil, err
	}
	set.Modes = slices.DeleteFunc(set.Modes, func(m ctxdir.Mode) bool { return m.Project != "" && m.Project == w.project })
	if w.project == "" {
		set.StorageMode = w.mode
	} else {
		set.Modes = append(set.Modes, rules[0])
	}
	project := ctxdir.Settings{Remotes: set.Remotes, Modes: rules}
	chosen := func(id uuid.UUID, labels map[string]string) bool { // it gets the mode, and from this rule
		return set.ModeOf(id, labels) == w.mode && (w.project == "" || project.ModeOf(id, labels) == w.mode)
	}
	here := map[uuid.UUID]bool{}
	for sum, err := range w.s.List(ctx, ctxdir.ListOptions{Kind: "*", Order: ctxdir.OrderCreated, Reverse: true}) {
		if err != nil {
			return nil, nil, err
		}
		here[sum.ID] = true
		if sum.Legacy == "" && !pull && chosen(sum.ID, sum.Labels) {
			ids = append(ids, sum.ID)
		}
	}
	if pull {
		ids, err = w.onServer(ctx, chosen)
	}
	return ids, rules, err
}

// onServer returns contexts that the server holds.
func (w *switching) onServer(ctx context.Context, chosen func(id uuid.UUID, labels map[string]string) bool) (ids []uuid.UUID, err error) {
	states, err := w.remote.Contexts(ctx, nil)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(states, 64) {
		var of []replica.HeadRequest
		for _, s := range part {
			if s.Commit != "" {
				of = append(of, replica.HeadRequest{ID: s.ID})
			}
		}
		heads, err := w.remote.Heads(ctx, of)
		if err != nil {
			return nil, err
		}
		for i := range heads {
			if chosen(of[i].ID, heads[i].Meta.Labels) {
				ids = append(ids, of[i].ID)
			}
		}
	}
	return ids, nil
}

// keepReferences stores references for lines that files of the projects here still have.
func (w *switching) keepReferences(ctx context.Context, ids []uuid.UUID) error {
	set, err := w.s.Settings()
	if err != nil {
		return err
	}
	bar := w.app.newProgress("Comparing with files")
	defer bar.Clear()
	var all reference.Kept
	for i, id := range ids {
		bar.Items("contexts", i, len(ids))
		err := w.s.Use(ctx, id, func(c *ctxdir.Context) error {
			project := c.Metadata().Labels["project"]
			root := set.Here(project)
			if info, err := os.Stat(root); project == "" || err != nil || !info.IsDir() {
				return nil
			}
			kept, err := reference.Keep(ctx, c, root, project)
			all.Add(kept)
			return err
		})
		if err != nil {
			return err
		}
	}
	w.sum.References, w.sum.Copies = all.References, all.Without
	return nil
}
