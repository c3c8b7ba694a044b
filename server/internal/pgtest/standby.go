package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// Backup copies a running server, with what it committed so far. The copy does not run. Settings are lines of postgresql.conf.
func (s *Server) Backup(settings ...string) (*Server, error) {
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
	out, err := b.command("pg_basebackup", "-D", b.Data(), "-c", "fast", "-h", s.Dir, "-U", "postgres").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	return b, b.Configure(append(settings, "unix_socket_directories = '"+dir+"'")...)
}

// Standby starts a server that follows s. From now on s commits nothing that the standby does not have on disk.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	// By default a promotion may wait for 5 s.
	b, err := s.Backup("wal_retrieve_retry_interval = 100", fmt.Sprintf("primary_conninfo = 'host=%s user=postgres'", s.Dir))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.Data(), "standby.signal"), nil, 0o600); err != nil {
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

// Dump copies a database to another one, by a file of pg_dump.
func Dump(ctx context.Context, from, to, file string) error {
	for _, args := range [][]string{{"pg_dump", "-Fc", "-f", file, from}, {"pg_restore", "--exit-on-error", "-d", to, file}} {
		out, err := exec.CommandContext(ctx, filepath.Join(Binaries(), args[0]), args[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	return nil
}
