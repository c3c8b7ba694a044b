package importer

// UnknownError is the error about a file that is not a history of a known format, but of a known look. It wraps [ErrFormat].
type UnknownError struct {
	Looks string // what the file looks like, as in "a chatbot-ui export"
	Next  string // what to do with it: an imperative, "" if there is nothing to do

	// Beside means that the file belongs to a history and holds no messages of its own, so an import of a folder passes
	// over it.
	Beside bool
}

func (e *UnknownError) Error() string { return ErrFormat.Error() + ": it looks like " + e.Looks }

// Unwrap returns [ErrFormat].
func (e *UnknownError) Unwrap() error { return ErrFormat }

// looks are what files look like that no signature fits.
var looks = []struct {
	UnknownError
	fits func(s *shape) bool
}{
	{UnknownError{Looks: "a legacy context", Next: `run "ctxtool migrate" with its path to convert it`},
		func(s *shape) bool { return s.has("message_pool") }},
	{UnknownError{Looks: "a message of a legacy context", Next: `run "ctxtool migrate" with the folder of its context.json to convert it`},
		func(s *shape) bool { return s.has("id", "parent_id") && s.within("message", "role", "content") }},
	{UnknownError{Looks: "the state of an OpenHands conversation", Next: "import the folder with its events", Beside: true},
		func(s *shape) bool {
			status := s.has("confirmation_policy") || s.has("execution_status") || s.has("agent_status")
			return s.has("id") && s.is("agent", '{') && s.is("workspace", '{') && status
		}},
	{UnknownError{Looks: "the description of an OpenHands conversation", Next: "import the folder with its events", Beside: true},
		func(s *shape) bool { return s.has("conversation_id", "selected_repository") }},
	{UnknownError{Looks: "the list of prompts of Gemini CLI", Next: "import the sessions in the folder chats", Beside: true},
		func(s *shape) bool { return s.array && s.has("sessionId", "messageId", "message") }},
	{UnknownError{Looks: "the list of sessions of Claude Code", Next: "import the sessions beside it", Beside: true},
		func(s *shape) bool { return s.within("entries", "sessionId", "fullPath") }},
	{UnknownError{Looks: "a chatbot-ui export", Next: lists},
		func(s *shape) bool { return s.is("history", '[') && s.has("folders") }},
	{UnknownError{Looks: "a list of tau-bench runs", Next: lists},
		func(s *shape) bool { return s.array && s.has("task_id", "reward") && s.is("traj", '[') }},
}

const lists = "write the messages of each conversation to a file, as a list of objects with role and content, and import these files"

// unknown is the error about a file that begins with a shape which no signature fits.
func unknown(s *shape) error {
	for i := range looks {
		if looks[i].fits(s) {
			return &looks[i].UnknownError
		}
	}
	return ErrFormat
}
