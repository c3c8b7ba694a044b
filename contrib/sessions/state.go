package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ctxdir/ctxdir"
)

// The prefixes of keys that belong to another scope than the session.
const (
	AppPrefix  = "app:"
	UserPrefix = "user:"
	TempPrefix = "temp:" // for one invocation: never stored
)

// scopes are the changes of state by scope, without prefixes.
type scopes struct{ app, user, session map[string]json.RawMessage }

func split(delta map[string]any) (scopes, error) {
	s := scopes{map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}}
	for key, value := range delta {
		to := s.session
		if strings.HasPrefix(key, TempPrefix) {
			continue
		}
		if rest, ok := strings.CutPrefix(key, AppPrefix); ok {
			key, to = rest, s.app
		} else if rest, ok := strings.CutPrefix(key, UserPrefix); ok {
			key, to = rest, s.user
		}
		b, err := Marshal(value)
		if err != nil {
			return s, err
		}
		to[key] = b
	}
	return s, nil
}

// WithoutTemp returns the changes of state that an event stores: those without the prefix "temp:".
func WithoutTemp(delta map[string]any) map[string]any {
	if delta == nil {
		return nil
	}
	kept := make(map[string]any, len(delta))
	for key, value := range delta {
		if !strings.HasPrefix(key, TempPrefix) {
			kept[key] = value
		}
	}
	return kept
}

// Marshal encodes v as JSON and leaves <, > and & as they are, so that grep finds them.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// merge adds values to a stored state.
func merge(state json.RawMessage, values map[string]json.RawMessage) (json.RawMessage, error) {
	if len(values) == 0 {
		return state, nil
	}
	all := map[string]json.RawMessage{}
	if len(state) > 0 {
		if err := json.Unmarshal(state, &all); err != nil {
			return nil, err
		}
	}
	for key, value := range values {
		all[key] = value
	}
	return Marshal(all)
}

// decode adds a stored state to values, each key with a prefix.
func decode(state json.RawMessage, prefix string, values map[string]any) error {
	if len(state) == 0 {
		return nil
	}
	var stored map[string]any
	err := json.Unmarshal(state, &stored)
	for key, value := range stored {
		values[prefix+key] = value
	}
	return err
}

// shared returns the metadata of the contexts that hold the states of an application and of a user.
func (s *Service) shared(k Key) (app, user ctxdir.Metadata) {
	app.Kind, app.ExternalID = "app-state", externalID(s.tool, k.App)
	app.Labels = map[string]string{"tool": s.tool, "app": k.App}
	user.Kind, user.ExternalID = "user-state", externalID(s.tool, k.App, k.User)
	user.Labels = map[string]string{"tool": s.tool, "app": k.App, "user": k.User}
	return app, user
}

// setShared changes the states of application and user.
func (s *Service) setShared(ctx context.Context, k Key, scopes scopes) error {
	app, user := s.shared(k)
	set := func(m ctxdir.Metadata, values map[string]json.RawMessage) error {
		if len(values) == 0 {
			return nil
		}
		return s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
			return c.Update(ctx, func(m *ctxdir.Metadata) (err error) {
				m.State, err = merge(m.State, values)
				return err
			})
		})
	}
	if err := set(app, scopes.app); err != nil {
		return err
	}
	return set(user, scopes.user)
}

// readShared adds the states of application and user to values.
func (s *Service) readShared(ctx context.Context, k Key, values map[string]any) error {
	app, user := s.shared(k)
	read := func(m ctxdir.Metadata, prefix string) error {
		err := s.store.Use(ctx, ctxdir.ContextID(m.Kind, m.ExternalID), func(c *ctxdir.Context) error {
			return decode(c.Metadata().State, prefix, values)
		})
		if errors.Is(err, ctxdir.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := read(app, AppPrefix); err != nil {
		return err
	}
	return read(user, UserPrefix)
}
