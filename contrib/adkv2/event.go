package adkv2

import (
	"encoding/json"
	"time"

	"github.com/ctxdir/ctxdir/contrib/sessions"
	"google.golang.org/adk/v2/session"
)

func marshalEvent(e *session.Event) (json.RawMessage, error) { return sessions.Marshal(e) }

func unmarshalEvent(b json.RawMessage) (*session.Event, error) {
	e := &session.Event{}
	return e, json.Unmarshal(b, e)
}

// createTime returns a time as [artifact.ArtifactVersion] has it.
func createTime(t time.Time) time.Time { return t }
