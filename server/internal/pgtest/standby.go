package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// Standby starts a server that follows s. From now on s commits nothing that the standby does not have on disk.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	dir, err := os.MkdirTemp(filepath.Dir(s.Dir), "pg")
	if err != nil {
		return nil, err
	}
	b := &Server{Dir: dir, who: s.who}
	if s.who != nil {
		if err := os.Chown(dir, int(s.who.Uid), int(s.who.Gid)); err != nil {
			return nil, err
		}
	}
	out, err := b.command("pg_basebackup", "-D", b.Data(), "-R", "-c", "fast", "-h", s.Dir, "-U", "postgres").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	conf, err := os.OpenFile(filepath.Join(b.Data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	// By default a promotion may wait for 5 s.
	fmt.Fprintf(conf, "unix_socket_directories = '%s'\nwal_retrieve_retry_interval = 100\n", dir)
	if err := conf.Close(); err != nil {
		return nil, err
	}
	if err := b.Run(); err != nil {
		return nil, err
	}
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return nil, err
	}
	defer c.Close(ctx) //nolint:errcheck // nothing is pending
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := c.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	for state := ""; state != "sync"; {
		err := c.QueryRow(ctx, "SELECT coalesce(max(sync_state), '') FROM pg_stat_replication").Scan(&state)
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Promote makes a standby a server of its own.
func (s *Server) Promote() error {
	out, err := s.command("pg_ctl", "promote", "-w", "-D", s.Data()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_ctl promote: %w: %s", err, out)
	}
	return nil
}

// EitherURL is the address of a database on whichever of two servers takes writes.
func (s *Server) EitherURL(other *Server, database string) string {
	return fmt.Sprintf("host=%s,%s user=postgres dbname=%s target_session_attrs=read-write", s.Dir, other.Dir, database)
}
