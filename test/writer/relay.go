package writer

import (
	"slices"
	"sync"
	"time"
)

// Relay is a crew in which another writer begins where one has ended.
type Relay struct {
	job Job

	mu     sync.Mutex
	crew   Crew
	number int // of jobs, also of writers that did not begin
	enough bool
	next   sync.WaitGroup
}

// StartRelay starts n writers, as [StartCrew] does.
func StartRelay(n int, j Job) (*Relay, error) {
	crew, err := StartCrew(n, j)
	return &Relay{job: j, crew: crew, number: n}, err
}

// Replace starts another writer for each that ends, from now on.
func (r *Relay) Replace() {
	for _, p := range r.Crew() {
		r.next.Go(func() {
			for p != nil {
				<-p.Ended()
				var err error
				for p, err = r.start(); err != nil; p, err = r.start() {
					time.Sleep(10 * time.Millisecond) // it could not begin, for what made the other one end
				}
			}
		})
	}
}

// start starts the next writer. nil: that is enough.
func (r *Relay) start() (*Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.enough {
		return nil, nil
	}
	r.number++
	p, err := Start(r.job.number(r.number - 1))
	if err == nil {
		r.crew = append(r.crew, p)
	}
	return p, err
}

// Enough ends Replace.
func (r *Relay) Enough() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enough = true
}

// Crew is all that were started.
func (r *Relay) Crew() Crew {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.crew)
}

// Kill kills those that are left.
func (r *Relay) Kill() {
	r.Enough()
	r.Crew().Kill()
	r.next.Wait()
}

// Accounts are the files with what the writers put down.
func (r *Relay) Accounts() (paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.number {
		paths = append(paths, r.job.number(i).Account)
	}
	return paths
}
