package api

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// DefaultAddress is where the server listens if nothing else is asked for.
const DefaultAddress = "127.0.0.1:7433"

// nextPorts is the number of ports that Listen tries.
const nextPorts = 20

// Listen listens at an address, or at the next free port if another program has it. An address with port 0 gets any.
func Listen(address string) (net.Listener, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address %q: expected HOST:PORT, such as %s", address, DefaultAddress)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("address %q: %q is not a port", address, text)
	}
	for try := range uint64(nextPorts) {
		l, listenErr := net.Listen("tcp", net.JoinHostPort(host, strconv.FormatUint(port+try, 10)))
		if listenErr == nil {
			return l, nil
		}
		err = listenErr
		if port == 0 || port+try >= 65535 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, err
}

// IsLoopback reports whether only programs of this machine can reach an address of the form HOST:PORT.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// patience is the time in which a client has to send or take the next piece of a body.
const patience = 30 * time.Second

const (
	// headerPatience is the time for the header of a request.
	headerPatience = 10 * time.Second
	// idle is how long a connection stays open between requests.
	idle = 2 * time.Minute
	// farewell is how long running requests have at the end.
	farewell = 5 * time.Second
	// maxConnections bounds open connections.
	maxConnections = 12_000
)

// bounds are limits that tests make smaller.
type bounds struct {
	patience    time.Duration
	connections int
	behind      int64 // of a follower, in bytes

	only func(r *http.Request) bool // for these requests; nil for all
}

// defaults are the bounds of a server.
func defaults() bounds {
	return bounds{patience: patience, connections: maxConnections, behind: maxBehind}
}

// of returns the bounds for a request.
func (b bounds) of(r *http.Request) bounds {
	if b.only != nil && !b.only(r) {
		return defaults()
	}
	return b
}

// connections bounds the open connections of a server. Above the bound it closes one that has no request, the oldest
// first: a client with many idle connections does not keep others out.
type connections struct {
	max int

	mu    sync.Mutex
	open  int
	since map[net.Conn]time.Time // those without a request, and since when
}

func (c *connections) changed(conn net.Conn, state http.ConnState) {
	var victim net.Conn
	c.mu.Lock()
	switch state {
	case http.StateNew:
		c.open++
		c.since[conn] = time.Now()
		if c.open > c.max {
			victim = c.oldest()
			delete(c.since, victim)
		}
	case http.StateIdle:
		c.since[conn] = time.Now()
	case http.StateActive:
		delete(c.since, conn)
	case http.StateClosed, http.StateHijacked:
		c.open--
		delete(c.since, conn)
	}
	c.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
}

func (c *connections) oldest() (conn net.Conn) {
	var at time.Time
	for each, since := range c.since {
		if conn == nil || since.Before(at) {
			conn, at = each, since
		}
	}
	return conn
}

// patientBody is the body of a request that must arrive piece by piece in time.
type patientBody struct {
	io.ReadCloser
	conn     *http.ResponseController
	patience time.Duration
}

func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.conn.SetReadDeadline(time.Now().Add(b.patience)) // not every connection has one
	return b.ReadCloser.Read(p)
}
