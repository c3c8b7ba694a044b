package writer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Found makes a store with contexts for writers to share.
func Found(dir string, contexts int) (shared []uuid.UUID, err error) {
	s, err := ctxdir.Init(dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for range contexts {
		c, err := s.Create(context.Background(), ctxdir.Metadata{Title: "shared"})
		if err != nil {
			return nil, err
		}
		shared = append(shared, c.ID())
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
	return shared, nil
}

// Crew is several writers at work on one store.
type Crew []*Process

// StartCrew starts n writers, with names, seeds and accounts of their own. The accounts of an earlier crew are to be
// gone.
func StartCrew(n int, j Job) (Crew, error) {
	var c Crew
	for i := range n {
		p, err := Start(j.number(i))
		if err != nil {
			c.Kill()
			return nil, errors.Join(err, fmt.Errorf("%d of %d writers were at work", i, n))
		}
		c = append(c, p)
	}
	return c, nil
}

// number is the job of one of several.
func (j Job) number(i int) Job {
	j.Name, j.Seed = fmt.Sprintf("w%d", i+1), j.Seed+uint64(i)
	j.Account = filepath.Join(j.Scratch, j.Name+".account")
	return j
}

// Kill kills those that are left.
func (c Crew) Kill() {
	for _, p := range c {
		p.Kill()
	}
}

// Accounts are the files with what the writers put down.
func (c Crew) Accounts() (paths []string) {
	for _, p := range c {
		paths = append(paths, p.Job.Account)
	}
	return paths
}
