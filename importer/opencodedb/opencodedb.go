// Package opencodedb reads the database in which opencode keeps its sessions from version 1.2 on. It is apart from
// package importer, so that only programs that want it link SQLite.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package opencodedb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/message"
	_ "modernc.org/sqlite" // the driver
)

// Read reads the sessions of a database one by one, in the form of an export. It changes nothing: the database is
// opened read-only, and opencode may write to it meanwhile. It implements [importer.Database].
func Read(ctx context.Context, path string, limit int64, report func(reason string), session func(export json.RawMessage) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	source := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return err
	}
	defer db.Close()
	// One transaction, so that all sessions are of one moment.
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("%w: %w", importer.ErrFormat, err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	r := &reader{ctx, tx, limit, report}
	ids, err := r.texts("SELECT id FROM session ORDER BY id")
	if err != nil {
		return fmt.Errorf("%w: not a database of opencode: %w", importer.ErrFormat, err)
	}
	for _, id := range ids {
		export, err := r.session(id)
		if err != nil {
			return err
		}
		if export == nil {
			continue
		}
		if err := session(export); err != nil {
			return err
		}
	}
	return nil
}

type reader struct {
	ctx    context.Context
	tx     *sql.Tx
	limit  int64
	report func(reason string)
}

func (r *reader) texts(query string, args ...any) (out []string, err error) {
	rows, err := r.tx.QueryContext(r.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// session returns a session as an export, nil if it is too large.
func (r *reader) session(id string) (json.RawMessage, error) {
	var size int64
	err := r.tx.QueryRowContext(r.ctx, `SELECT coalesce((SELECT sum(length(data)) FROM message WHERE session_id = ?1), 0)
		+ coalesce((SELECT sum(length(data)) FROM part WHERE session_id = ?1), 0)`, id).Scan(&size)
	if err != nil {
		return nil, err
	}
	if size > r.limit {
		r.report(fmt.Sprintf("session %.64q: %v: %d bytes exceed the limit of %d", id, importer.ErrTooLarge, size, r.limit))
		return nil, nil
	}
	info, err := r.info(id)
	if err != nil {
		return nil, err
	}
	parts := map[string][]json.RawMessage{}
	query := `SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id`
	err = r.data(query, id, func(part, message string, data json.RawMessage) {
		data = with(with(with(data, "id", part), "sessionID", id), "messageID", message)
		parts[message] = append(parts[message], data)
	})
	if err != nil {
		return nil, err
	}
	export := struct {
		Info     json.RawMessage   `json:"info"`
		Messages []json.RawMessage `json:"messages"`
	}{info, []json.RawMessage{}}
	var failed error
	query = `SELECT id, '', data FROM message WHERE session_id = ? ORDER BY time_created, id`
	err = r.data(query, id, func(message, _ string, data json.RawMessage) {
		list := parts[message]
		if list == nil {
			list = []json.RawMessage{}
		}
		record, err := json.Marshal(struct {
			Info  json.RawMessage   `json:"info"`
			Parts []json.RawMessage `json:"parts"`
		}{with(with(data, "id", message), "sessionID", id), list})
		if err != nil {
			failed = err
		}
		export.Messages = append(export.Messages, record)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(export)
}

// data calls f for each row with a valid object, and reports the others.
func (r *reader) data(query, session string, f func(id, of string, data json.RawMessage)) error {
	rows, err := r.tx.QueryContext(r.ctx, query, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, of string
		var data []byte
		if err := rows.Scan(&id, &of, &data); err != nil {
			return err
		}
		body, err := message.Compact(data)
		if err != nil {
			r.report(fmt.Sprintf("session %.64q: row %.64q: %v", session, id, err))
			continue
		}
		f(id, of, body)
	}
	return rows.Err()
}

// info returns the description of a session in the form of an export. Columns differ between versions.
func (r *reader) info(id string) (json.RawMessage, error) {
	rows, err := r.tx.QueryContext(r.ctx, "SELECT * FROM session WHERE id = ?", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	if !rows.Next() {
		return nil, fmt.Errorf("session %.64q: %w", id, sql.ErrNoRows)
	}
	if err := rows.Scan(values...); err != nil {
		return nil, err
	}
	info, times := map[string]any{}, map[string]any{}
	for i, column := range columns {
		value := *values[i].(*any)
		if b, ok := value.([]byte); ok {
			value = string(b)
		}
		switch column {
		case "time_created":
			times["created"] = value
		case "time_updated":
			times["updated"] = value
		case "project_id":
			info["projectID"] = value
		case "parent_id":
			if value != nil {
				info["parentID"] = value
			}
		default:
			// Some columns hold JSON.
			if s, ok := value.(string); ok && len(s) > 0 && s[0] == '{' && json.Valid([]byte(s)) {
				value = json.RawMessage(s)
			}
			if value != nil {
				info[column] = value
			}
		}
	}
	info["time"] = times
	return json.Marshal(info)
}

// with returns an object with a text in place of a member.
func with(object json.RawMessage, key, text string) json.RawMessage {
	value, err := json.Marshal(text)
	if err != nil {
		return object
	}
	return importer.WithMember(object, key, value)
}
