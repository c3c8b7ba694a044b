package api

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// guard decides which requests the server answers. A web page that a person visits can send requests to this machine,
// so an address of loopback alone protects nothing:
//
//   - With DNS rebinding, a page makes its own host name mean this machine. Its requests carry that name: 421.
//   - A page of another origin, a server on another port of this machine included, says so in Origin or
//     Sec-Fetch-Site: 403.
//   - Other users and programs of this machine do not know the token: 401. Browsers never send it by themselves, as they
//     do with a cookie.
type guard struct {
	token   string
	public  string // the host, with a port if it is not that of the scheme, at which others reach the server; may be empty
	origins *http.CrossOriginProtection
	wrong   wrongTokens
}

func newGuard(token string, public *url.URL) (*guard, error) {
	g := &guard{token: token, origins: http.NewCrossOriginProtection()}
	if public == nil {
		return g, nil
	}
	g.public = strings.ToLower(public.Host)
	return g, g.origins.AddTrustedOrigin(public.Scheme + "://" + g.public)
}

// host rejects a request for another host.
func (g *guard) host(r *http.Request) *Problem {
	if g.has(r) {
		return nil
	}
	return problem(codeMisdirected, "the host name of the request is neither localhost nor the address of the server; for another name, "+
		"start the server with --public-url")
}

func (g *guard) has(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	if g.public != "" && host == g.public {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	if addr.Unmap().IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap().WithZone("") == addr.Unmap().WithZone("")
}

// origin rejects a request that a page of another origin makes, whatever its method: a GET may tell something, and a
// WebSocket begins with one.
func (g *guard) origin(r *http.Request) *Problem {
	as := *r
	as.Method = http.MethodPost // the library's check lets GET pass
	if err := g.origins.Check(&as); err != nil {
		return problem(codeOrigin, "the request comes from a page of another origin")
	}
	return nil
}

// subprotocol is what the name of a subprotocol begins with that carries the token of a WebSocket: a browser cannot set
// other headers for it.
const subprotocol = "ctxdir.token."

// RequestToken returns the token of a request, as the header has it, or the subprotocol of a WebSocket; empty without one.
func RequestToken(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok {
		return token
	}
	for _, values := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(values, ",") {
			if t, found := strings.CutPrefix(strings.TrimSpace(name), subprotocol); found {
				return t
			}
		}
	}
	return ""
}

// authorized rejects a request without the token. A right token always counts; of wrong ones the server answers some,
// and only says "too many" to the others.
func (g *guard) authorized(r *http.Request) *Problem {
	token := RequestToken(r)
	if subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1 {
		return nil
	}
	if token != "" && !g.wrong.allowed(time.Now()) {
		return problem(codeTooMany, "too many requests with a wrong token; try again later")
	}
	return problem(codeUnauthorized, "the request needs the token of the server, as Authorization: Bearer TOKEN")
}

const (
	// wrongBurst is the number of wrong tokens that are answered at once, and wrongEvery the time until another one is.
	wrongBurst = 20
	wrongEvery = time.Second
)

// wrongTokens limits answers to wrong tokens, as a bucket of tokens that fills with time.
type wrongTokens struct {
	mu   sync.Mutex
	full time.Time // when all wrongBurst would be allowed again
}

func (w *wrongTokens) allowed(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full.Before(now) {
		w.full = now
	}
	if w.full.Sub(now) > (wrongBurst-1)*wrongEvery {
		return false
	}
	w.full = w.full.Add(wrongEvery)
	return true
}
