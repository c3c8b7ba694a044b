package users

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestInvitations(t *testing.T) { each(t, testInvitations) }

func testInvitations(t *testing.T, open opener) {
	x := open()
	now := time.Now()
	x.now = func() time.Time { return now }
	secret, invited, err := x.Invite(t.Context(), time.Hour, TokenOptions{})
	check(t, err)
	refused := func(what, secret string, want error) {
		t.Helper()
		if token, _, err := open().withClock(x.now).Accept(t.Context(), secret, "ada"); !errors.Is(err, want) || token != "" {
			t.Errorf("%s: %q %v", what, token, err)
		}
	}
	refused("nonsense", "nonsense", ErrUnauthorized)
	refused("another secret", secret[:60]+"AAAA", ErrUnauthorized)
	if _, err := x.Authorize(t.Context(), secret); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("an invitation is a token: %v", err)
	}
	if _, _, err := x.Accept(t.Context(), secret, "a/b"); !errors.Is(err, ErrInvalid) {
		t.Errorf("an invalid name: %v", err)
	}
	_, err = x.Add(t.Context(), "ada")
	check(t, err)
	refused("a name that is taken", secret, ErrExists)
	token, u, err := x.Accept(t.Context(), secret, "bob")
	check(t, err)
	if g, err := open().Authorize(t.Context(), token); err != nil || g.User != u.ID || u.ID != invited.ID || g.Scope != Write {
		t.Errorf("the token of an invitation: %+v %v", g, err)
	}
	refused("a used one", secret, ErrUnauthorized)
	if _, err := x.Authorize(t.Context(), secret); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("a used invitation is a token: %v", err)
	}
	late, _, err := x.Invite(t.Context(), time.Hour, TokenOptions{})
	check(t, err)
	ended, of, err := x.Invite(t.Context(), 3*time.Hour, TokenOptions{})
	check(t, err)
	if all, err := open().Invitations(t.Context()); err != nil || len(all) != 2 || all[1].ID != of.ID {
		t.Errorf("open invitations: %+v %v", all, err)
	}
	check(t, x.Uninvite(t.Context(), of.ID))
	refused("one that was ended", ended, ErrUnauthorized)
	if err := x.Uninvite(t.Context(), uuid.New()); !errors.Is(err, ErrNotFound) {
		t.Errorf("ending none: %v", err)
	}
	now = now.Add(time.Hour)
	refused("an expired one", late, ErrUnauthorized)
	_, _, err = x.Invite(t.Context(), time.Hour, TokenOptions{})
	check(t, err)
	if all, err := x.all.list(t.Context(), "invited"); err != nil || len(all) != 1 {
		t.Errorf("expired invitations stay: %+v %v", all, err)
	}
	for _, lasts := range []time.Duration{0, -1, 2 * maxInvited} {
		if _, _, err := x.Invite(t.Context(), lasts, TokenOptions{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("an invitation for %s: %v", lasts, err)
		}
	}
	if all, err := open().List(t.Context()); err != nil || len(all) != 2 || all[1].Name != "bob" || all[1].Invitation != nil {
		t.Errorf("users: %+v %v", all, err)
	}
}

// TestLimitedInvitation: the token has the limits of the invitation.
func TestLimitedInvitation(t *testing.T) { each(t, testLimitedInvitation) }

func testLimitedInvitation(t *testing.T, open opener) {
	x := open()
	now := time.Now()
	x.now = func() time.Time { return now }
	secret, _, err := x.Invite(t.Context(), time.Hour, TokenOptions{Scope: Read, Project: "/harbour", Expires: 2 * time.Hour})
	check(t, err)
	if all, err := open().Invitations(t.Context()); err != nil || len(all) != 1 || all[0].Invitation.Project != "/harbour" {
		t.Errorf("%+v %v", all, err)
	}
	now = now.Add(30 * time.Minute)
	token, _, err := open().withClock(x.now).Accept(t.Context(), secret, "ada")
	check(t, err)
	g, err := x.Authorize(t.Context(), token)
	check(t, err)
	if ends := g.Expires.Sub(now); g.Scope != Read || g.Project != "/harbour" || ends < 2*time.Hour-time.Second || ends > 2*time.Hour {
		t.Errorf("%+v", g)
	}
	for _, bad := range []TokenOptions{{Scope: "all"}, {Expires: -1}, {Project: strings.Repeat("x", maxProject+1)}} {
		if _, _, err := x.Invite(t.Context(), time.Hour, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.50v: %v", bad, err)
		}
	}
}

// TestAcceptTogether lets several people accept one invitation at the same time: one does.
func TestAcceptTogether(t *testing.T) { each(t, testAcceptTogether) }

func testAcceptTogether(t *testing.T, open opener) {
	secret, _, err := open().Invite(t.Context(), time.Hour, TokenOptions{})
	check(t, err)
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		x := open()
		wg.Go(func() { _, _, results[i] = x.Accept(t.Context(), secret, strings.Repeat("a", i+1)) })
	}
	wg.Wait()
	accepted := 0
	for _, err := range results {
		if err == nil {
			accepted++
		} else if !errors.Is(err, ErrUnauthorized) {
			t.Error(err)
		}
	}
	if all, err := open().List(t.Context()); accepted != 1 || len(all) != 1 || err != nil {
		t.Errorf("%d accepted, users: %+v %v", accepted, all, err)
	}
}

// TestAcceptCut begins to accept an invitation, and ends before the user has moved: the invitation is open.
func TestAcceptCut(t *testing.T) {
	open := inFiles(t, t.TempDir())
	x := open()
	secret, u, err := x.Invite(t.Context(), time.Hour, TokenOptions{})
	check(t, err)
	u.Name = "nobody"
	check(t, fileWriter{x.all.(files)}.put(invited, &u))
	if all, err := x.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("users: %+v %v", all, err)
	}
	token, _, err := open().Accept(t.Context(), secret, "ada")
	check(t, err)
	if _, err := x.Authorize(t.Context(), token); err != nil {
		t.Error(err)
	}
	if u, err := x.Find(t.Context(), "ada"); err != nil || len(u.Tokens) != 1 {
		t.Errorf("%+v %v", u, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
