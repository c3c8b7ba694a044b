package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// An opencode session has messages, and each message has parts. An export holds all in one object. The storage folder
// of older versions has a file for each session, message and part; newer versions have tables. A record is a message
// with its parts, {"info":…,"parts":[…]}, as in an export, wherever it comes from.

// exportingLine is what opencode prints before an export.
const exportingLine = "Exporting session: "

// parseOpenCode reads an export.
func parseOpenCode(body json.RawMessage) (*conversation, error) {
	c := &conversation{}
	var info, messages jsontext.Value
	err := message.Members(body, func(name string, v jsontext.Value) error {
		switch {
		case name == "info" && v.Kind() == '{' && info == nil:
			info = v.Clone()
			c.keep(name, v)
		case name == "messages" && v.Kind() == '[' && messages == nil:
			messages = v.Clone()
		default:
			c.keep(name, v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if info == nil || messages == nil {
		return nil, errors.New(`not an opencode export: it has no "info" and "messages"`)
	}
	c.openCodeSession(info)
	err = elements(messages, func(v jsontext.Value) error {
		body, err := message.Compact(v)
		if err != nil {
			c.problems = append(c.problems, fmt.Sprintf("message %d: %s", len(c.nodes)+1, reasonOf(err)))
			return nil
		}
		c.openCodeMessage(body)
		return nil
	})
	c.openCodeRevert(info)
	return c, err
}

// openCodeSession learns what the description of a session says.
func (c *conversation) openCodeSession(info jsontext.Value) {
	_ = message.Members(info, func(name string, v jsontext.Value) error {
		switch name {
		case "id":
			c.info.Session = text(v, maxName)
		case "title":
			if t := text(v, maxText); !strings.HasPrefix(t, "New session - ") {
				c.info.Title = title(t)
			}
		case "directory":
			c.info.label(LabelProject, text(v, maxPath))
		case "parentID":
			if parent := text(v, maxName); strings.HasPrefix(parent, "ses_") {
				c.info.Parent = ContextID(OpenCode, parent)
			}
		case "time":
			c.info.CreatedAt = message.Time(member(v, "created"))
			c.info.StateAt = message.Time(member(v, "updated"))
		}
		return nil
	})
}

// openCodeMessage adds a message with its parts.
func (c *conversation) openCodeMessage(body json.RawMessage) {
	info := member(jsontext.Value(body), "info")
	r := Record{Role: textAt(info, maxName, "role"), Type: "message", Body: body}
	r.CreatedAt = message.Time(member(info, "time", "created"))
	if c.info.Model == "" {
		c.info.Model = textAt(info, maxName, "modelID")
	}
	if r.Role == "user" {
		c.titleByPrompt(contentText(member(jsontext.Value(body), "parts")))
	}
	c.append(textAt(info, maxName, "id"), r)
}

// openCodeRevert ends the conversation before the message up to which the person took it back. The rest is a fork.
func (c *conversation) openCodeRevert(info jsontext.Value) {
	until := textAt(info, maxName, "revert", "messageID")
	for i := range c.nodes {
		if until != "" && c.nodes[i].own == until && i > 0 {
			c.current = c.nodes[i-1].name
			return
		}
	}
}

// openCodeFolder reads a session of a storage folder: the file that is open, and those of its messages and parts.
// Paths come from the content of files, so they are resolved within the storage folder only.
func (j *job) openCodeFolder() error {
	body, err := j.only()
	if err != nil {
		return err
	}
	c := &conversation{}
	c.keep("info", jsontext.Value(body))
	c.openCodeSession(jsontext.Value(body))
	folder, err := filepath.Abs(j.path)
	if err != nil {
		return err
	}
	// storage/session/<project>/<session>.json
	root, err := os.OpenRoot(filepath.Dir(filepath.Dir(filepath.Dir(folder))))
	if err != nil {
		return err
	}
	defer root.Close()
	if !plain(c.info.Session) {
		return fmt.Errorf("%s: %w: session id %.64q", j.path, ErrFormat, c.info.Session)
	}
	size := int64(0)
	err = j.folderFiles(root, path.Join("message", c.info.Session), func(name string, info json.RawMessage) error {
		id := textAt(jsontext.Value(info), maxName, "id")
		if id == "" {
			id = strings.TrimSuffix(name, ".json")
		}
		parts := []byte{'['}
		if plain(id) {
			err := j.folderFiles(root, path.Join("part", id), func(_ string, part json.RawMessage) error {
				if len(parts) > 1 {
					parts = append(parts, ',')
				}
				parts = append(parts, part...)
				return nil
			})
			if err != nil {
				return err
			}
		}
		record := openCodeRecord(info, append(parts, ']'))
		if size += int64(len(record)); size > j.o.MaxRecord {
			return fmt.Errorf("%s: %w: the session exceeds the limit of %d bytes", j.path, ErrTooLarge, j.o.MaxRecord)
		}
		c.openCodeMessage(record)
		return nil
	})
	if err != nil {
		return err
	}
	c.openCodeRevert(jsontext.Value(body))
	return j.document(c, 1)
}

// openCodeRecord is a message in the form of an export.
func openCodeRecord(info, parts []byte) json.RawMessage {
	b := appendMember([]byte{'{'}, "info", info)
	return append(appendMember(b, "parts", parts), '}')
}

// only returns the only record of the file.
func (j *job) only() (body json.RawMessage, err error) {
	err = j.each(j.records(j.report, j.o.Progress), func(b json.RawMessage, _ int64) error {
		body = b
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err == nil && body == nil {
		err = fmt.Errorf("%s: %w", j.path, ErrEmpty)
	}
	return body, err
}

// folderFiles calls f for each JSON file of a folder, in the order of the names, which begin with a time. A missing
// folder has no files. A file that cannot be read is a problem, and the rest follows.
func (j *job) folderFiles(root *os.Root, dir string, f func(name string, body json.RawMessage) error) error {
	entries, err := fs.ReadDir(root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		name := path.Join(dir, e.Name())
		body, err := readRecord(root, name, j.o.MaxRecord)
		if isUnfinished(err, j.o.Growing) {
			continue
		}
		if err != nil {
			j.problem(Problem{filepath.Join(root.Name(), filepath.FromSlash(name)), 1, reasonOf(err)})
			continue
		}
		if err := f(e.Name(), body); err != nil {
			return err
		}
	}
	return nil
}
