package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/meter"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TestTakenOver lets two servers answer for the same users in turns: each notices that the other one took over a store, and opens
// it anew.
func TestTakenOver(t *testing.T) {
	at := newDatabase(t)
	kits := []*kit{newKit(t, at, server.Options{}), joinKit(t, at, server.Options{})}
	kits[1].tokens = kits[0].tokens
	token := kits[0].tokens["ada"]
	id := kits[0].create(token, "title", "message 0")
	path := "/v1/contexts/" + id + "/branches/main/messages"
	for i := 1; i <= 10; i++ {
		k := kits[i%2]
		body := fmt.Sprintf(`{"role":"user","content":"message %d"}`, i)
		r := k.do(token, "POST", path, body)
		if r.status != http.StatusCreated {
			t.Fatalf("message %d: %d %s", i, r.status, r.body)
		}
	}
	for i, k := range kits {
		r := k.do(token, "GET", path, "")
		for n := range 11 {
			if found := strings.Count(r.body, fmt.Sprintf(`"message %d"`, n)); found != 1 {
				t.Errorf("server %d: message %d is there %d times", i, n, found)
			}
		}
	}
}

// TestNotPrepared asks a server whose tables are not there yet. That is no error of it.
func TestNotPrepared(t *testing.T) {
	at := newDatabase(t)
	d, err := server.NewDatabase(t.Context(), at.url, server.DatabaseOptions{Master: at.master})
	must(t, err)
	defer d.Close()
	k := &kit{T: t, log: &lines{}}
	o := server.Options{Inviting: d.Users(), API: api.Options{Log: slog.New(slog.NewJSONHandler(k.log, nil))}}
	k.server, err = server.New(d, d, o)
	must(t, err)
	defer k.server.Close()
	k.url = serve(t, k.server)
	for _, a := range []answer{
		k.do("token", "GET", "/v1/contexts", ""), k.do("", "POST", "/join", `{"invitation":"x","name":"ada"}`), k.do("", "GET", "/readyz", ""),
	} {
		if a.status != http.StatusServiceUnavailable {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if log := k.log.String(); strings.Contains(log, `"ERROR"`) || strings.Count(log, `"INFO"`) != 2 {
		t.Error(log)
	}
}

// TestOtherKey starts with a key that is not that of the database.
func TestOtherKey(t *testing.T) {
	at, other := newDatabase(t), newDatabase(t)
	k := newKit(t, at, server.Options{})
	id := k.create(k.tokens["ada"], "title", "text")
	d, err := server.NewDatabase(t.Context(), at.url, server.DatabaseOptions{Master: other.master})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Prepare(t.Context()); !errors.Is(err, pgfs.ErrKey) {
		t.Errorf("prepared with another key: %v", err)
	}
	if err := d.Ready(t.Context()); err == nil {
		t.Error("ready with another key")
	}
	if r := k.do(k.tokens["ada"], "GET", "/v1/contexts/"+id, ""); r.status != http.StatusOK {
		t.Errorf("with the right key: %d", r.status)
	}
}

// TestMoveAnywhere moves a user from a folder to the database and on to another folder, by sync. All three are equal.
func TestMoveAnywhere(t *testing.T) {
	places := []backend{{dir: t.TempDir()}, newDatabase(t), {dir: t.TempDir()}}
	laptop, err := ctxdir.Init(filepath.Join(t.TempDir(), "laptop"))
	if err != nil {
		t.Fatal(err)
	}
	defer laptop.Close()
	fill(t, laptop)
	var want string
	for i, at := range places {
		k := newKit(t, at, server.Options{})
		remote := func(s *ctxdir.Store) {
			t.Helper()
			c := replica.NewClient(replica.NewHTTP(k.url+"/v1/replica", k.tokens["ada"]), uuid.Nil)
			total, err := replica.Sync(t.Context(), replica.NewFolder(s), c, replica.Options{})
			if err != nil || total.Failed > 0 {
				t.Fatal(total, err)
			}
		}
		remote(laptop)
		if got := k.everything("ada"); i == 0 {
			want = got
		} else if got != want {
			t.Errorf("place %d has other messages (%d bytes) than the first (%d)", i, len(got), len(want))
		}
		// The next place gets it from a new machine, which has it from here alone.
		next, err := ctxdir.Init(filepath.Join(t.TempDir(), "next"))
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		remote(next)
		laptop = next
	}
	if strings.Count(want, "\n") < 20 {
		t.Errorf("there was little to move: %.1000s", want)
	}
}

// fill makes contexts with branches.
func fill(t *testing.T, s *ctxdir.Store) {
	t.Helper()
	for i := range 3 {
		c, err := s.Create(t.Context(), ctxdir.Metadata{Title: fmt.Sprint("context ", i)})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 6 {
			text := fmt.Sprintf(`{"role":"user","content":"message %d %s"}`, n, strings.Repeat("long ", n*1000))
			if _, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: json.RawMessage(text)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// everything is the messages of each context.
func (k *kit) everything(user string) string {
	k.Helper()
	var all strings.Builder
	list := k.do(k.tokens[user], "GET", "/v1/contexts", "")
	ids := regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindAllStringSubmatch(list.body, -1)
	slices.SortFunc(ids, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
	for _, m := range ids {
		r := k.do(k.tokens[user], "GET", "/v1/contexts/"+m[1]+"/branches/main/messages", "")
		fmt.Fprintf(&all, "%s %d\n%s\n", m[1], r.status, r.body)
	}
	return all.String()
}

// TestOneUserInATransaction reads what a database is asked while users work, and fails for a statement that does not begin
// with the user, and for a transaction of two. So the tables can be distributed by user.
func TestOneUserInATransaction(t *testing.T) {
	s, err := pgtest.Start("", "log_statement = 'all'", "log_line_prefix = '\x01%v '", "max_connections = 100")
	if errors.Is(err, pgtest.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	pool, name, err := s.Database(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	at := newDatabase(t)
	at.url, at.apart, at.bucket = s.URL(name), true, inFolder(t, t.TempDir())
	k := newKit(t, at, server.Options{})
	for i := range 8 {
		name := fmt.Sprint("user", i)
		if _, err := k.users.Add(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		k.tokens[name] = k.token(name, users.TokenOptions{})
	}
	log := filepath.Join(s.Dir, "log")
	before := logged(t, log) // the tables were made
	done := make(chan bool)
	for _, token := range k.tokens {
		go func() {
			defer func() { done <- true }()
			id := k.create(token, "title", dense())
			for range 10 {
				k.do(token, "POST", "/v1/contexts/"+id+"/branches/main/messages", `{"role":"user","content":"more"}`)
			}
			for _, op := range [][2]string{{"GET", ""}, {"GET", "/branches/main/messages"}, {"DELETE", ""}} {
				k.do(token, op[0], "/v1/contexts/"+id+op[1], "")
			}
			k.do(token, "GET", "/v1/search?q=text", "")
			k.do(token, "GET", "/v1/trash", "")
		}()
	}
	for range k.tokens {
		<-done
	}
	for name := range k.tokens {
		u, err := k.users.Find(t.Context(), name)
		if err == nil {
			err = k.stores.(server.UsageStores).Usage().Add(t.Context(), u.ID, meter.New(time.Now(), 1, 2))
		}
		if err != nil {
			t.Fatal(err)
		}
		k.rows(name)
	}
	if _, err := k.users.Remove(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.users.Erase(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if err := k.users.Share(t.Context(), "ada", "/harbour", "user1"); err != nil {
		t.Fatal(err)
	}
	_, err = k.stores.(*server.Database).Sweep(t.Context(), 0)
	must(t, err)
	secret, _, err := k.users.Invite(t.Context(), time.Hour, users.TokenOptions{})
	must(t, err)
	_, _, err = k.users.Accept(t.Context(), secret, "dan")
	must(t, err)
	owners, statements := map[string]string{}, 0
	for _, l := range logged(t, log)[len(before):] {
		if control.MatchString(l.statement) {
			continue
		}
		statements++
		user := firstParameter.FindStringSubmatch(l.parameters)
		if user == nil || !concernsOne.MatchString(l.statement) {
			if !administrators[l.statement] {
				t.Errorf("does not concern one user: %s\n%s", l.statement, l.parameters)
			}
			continue
		}
		if was, is := owners[l.transaction]; is && was != user[1] {
			t.Errorf("a transaction of %s and %s: %s", was, user[1], l.statement)
		}
		owners[l.transaction] = user[1]
	}
	if statements < 30 {
		t.Errorf("only %d statements were seen", statements)
	}
}

var (
	control        = regexp.MustCompile(`(?i)^(begin|commit|rollback|;|-- ping)`)
	firstParameter = regexp.MustCompile(`(?i)^parameters: \$1 = '([0-9a-f-]{36})'`)
	concernsOne    = regexp.MustCompile(`user_id = \$1|INTO \w+ (\([a-z_, ]+\) )?(VALUES \(\$1|SELECT \$1)`)
	// administrators are the statements of whoever manages users: they concern all of them.
	administrators = map[string]bool{
		"SELECT record FROM users WHERE removed = $1":   true,
		"SELECT record FROM invitations":                true,
		"SELECT pg_advisory_xact_lock(7433201129)":      true,
		"SELECT count(*) FROM users WHERE user_id = $1": true,

		"SELECT object FROM extents WHERE object = ANY($1::uuid[])": true, // a sweep
	}
)

// line is a statement in the log of a database.
type line struct{ transaction, statement, parameters string }

func logged(t *testing.T, path string) (all []line) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range strings.Split(string(b), "\x01") {
		transaction, text, _ := strings.Cut(entry, " ")
		text = strings.TrimSpace(text)
		_, statement, is := strings.Cut(text, ": ")
		switch {
		case strings.HasPrefix(text, "LOG:  execute ") && is:
			_, statement, _ = strings.Cut(statement, ": ")
			all = append(all, line{transaction: transaction, statement: strings.TrimSpace(statement)})
		case strings.HasPrefix(text, "LOG:  statement: "):
			_, statement, _ = strings.Cut(statement, ": ")
			all = append(all, line{transaction: transaction, statement: strings.TrimSpace(statement)})
		case strings.HasPrefix(text, "DETAIL:  ") && len(all) > 0:
			all[len(all)-1].parameters = strings.TrimPrefix(text, "DETAIL:  ")
		}
	}
	return all
}

// TestQuota fills a store up to its quota. Nothing is added then, and what is there can be read and removed.
func TestQuota(t *testing.T) { each(t, testQuota) }

func testQuota(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	ada, bob := k.tokens["ada"], k.tokens["bob"]
	id := k.create(ada, "title", "text")
	if err := k.users.SetQuota(t.Context(), "ada", 100_000); err != nil {
		t.Fatal(err)
	}
	path := "/v1/contexts/" + id + "/branches/main/messages"
	// Text that does not get smaller, so that each message takes some room.
	last := 0
	for i := 0; i < 40 && last != http.StatusInsufficientStorage; i++ {
		text := uuid.NewString()
		for len(text) < 10_000 {
			text += uuid.NewString()
		}
		last = k.do(ada, "POST", path, `{"role":"user","content":"`+text+`"}`).status
	}
	if last != http.StatusInsufficientStorage {
		t.Errorf("above the quota: %d", last)
	}
	if r := k.do(ada, "GET", path, ""); r.status != http.StatusOK {
		t.Errorf("reading: %d", r.status)
	}
	if r := k.do(ada, "DELETE", "/v1/contexts/"+id, ""); r.status >= 300 {
		t.Errorf("removing: %d %s", r.status, r.body)
	}
	k.create(bob, "of bob", "he has no quota")
}

// TestSwappedKeys gives each user the key of the other: nobody sees anything.
func TestSwappedKeys(t *testing.T) {
	at := newDatabase(t)
	k := newKit(t, at, server.Options{Idle: 1})
	for _, token := range k.tokens {
		k.create(token, "CANARY-TITLE", "text")
	}
	eventually(t, "no store is open", func() bool { return strings.Contains(k.metrics(), "ctxdir_stores_open 0\n") })
	pool, err := pgxpool.New(t.Context(), at.url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	const swap = `UPDATE keys a SET content = b.content, names = b.names FROM keys b, users u, users v
	WHERE a.user_id = u.user_id AND b.user_id = v.user_id AND a.user_id <> b.user_id`
	if tag, err := pool.Exec(t.Context(), swap); err != nil || tag.RowsAffected() != 2 {
		t.Fatal(tag, err)
	}
	for user, token := range k.tokens {
		r := k.do(token, "GET", "/v1/contexts", "")
		if r.status != http.StatusServiceUnavailable || strings.Contains(r.body, "CANARY") {
			t.Errorf("%s: %d %s", user, r.status, r.body)
		}
	}
}
