package search

import (
	"time"

	"github.com/google/uuid"
)

// Query says what to find. A message must meet all conditions. Text or Path is required.
//
// A word of Text finds its other forms too: "locks" finds "locking". A part of an identifier finds the identifier, and
// an identifier finds only itself. Words with other characters between them, such as a path, are a phrase. In scripts
// without spaces any two characters are a word.
//
//	flaky test         any of the words; of two words, messages with both come first
//	"flaky test"       these words side by side, as they are written
//	flaky OR fragile   one of the words
//	-windows           without this word, or "phrase"
//	pars*              words that begin so
//
// Words without operators are plain language. They find the messages with any of them that is not very common in English,
// and order them by how many and how rare words they have, by who says them, and by what is said around them. The words
// that would make it more than 5,000 messages, the most frequent ones, are left out. With operators, a message must meet
// all conditions. Of several messages with the same text, one is found, unless Bookkeeping is set.
type Query struct {
	Text     string
	Phrase   bool              // Text as a whole is a phrase
	Contexts []uuid.UUID       // in these contexts; empty for all
	Except   []uuid.UUID       // not in these contexts
	Branch   string            // shown by a branch of this name
	Roles    []string          // of one of these roles; what a tool answered is of the role "tool", also in a message of a user
	Types    []string          // of one of these types
	Kind     string            // in contexts or branches of this kind, such as "moments"; empty for contexts without one; "*" for all
	Labels   map[string]string // in contexts with all these labels
	Project  string            // in contexts with the label "project"
	Since    time.Time         // of this time or later
	Until    time.Time         // before this time
	Path     string            // that attach, read or write a file whose path, or the end of it after a slash, is like this: with *, ?, [a-z]
	Removed  bool              // also messages that no branch shows any more, until a collection removes them
	// Bookkeeping adds records of agent tools that people do not read, and that repeat other messages. Without it, they
	// are left out unless Roles names their role.
	Bookkeeping bool
	Limit       int    // at most so many; 0 for all
	Cursor      string // continues behind the hit whose Cursor it is
}

// Hit is a message that a query found.
type Hit struct {
	Context  uuid.UUID
	Title    string            // of the context
	Labels   map[string]string // of the context
	Branches []string          // that show the message
	Kind     string            // of these branches, such as "moments"; empty for those of a conversation
	Line     uuid.UUID
	Position int64
	ID       uuid.UUID
	Role     string
	Type     string
	At       time.Time // the message's own time, or that of its commit
	Pointer  string    // RFC 6901, to the text of the snippet in the message
	Snippet  string    // a part of that text, on one line
	Marks    [][2]int  // the words found, as byte ranges of Snippet
	Paths    []string  // of files, if the query has a Path: those like it
	Score    float64   // larger is better; comparable within one search
	Partial  bool      // it lacks some of the words of a Text in plain language
	Cursor   string
}

// searching is one search.
type searching struct {
	x       *Index
	q       *Query
	read    int // candidates
	parsed  query
	stems   stemmer
	names   *directory
	after   cursor
	talk    bool   // records of bookkeeping are left out
	speech  bool   // calls of tools and what tools answer are left out
	weights string // of the columns of terms
	partial bool   // no message meets the conditions of the query, and others have some of its words
}

// found is a row that meets the conditions.
type found struct {
	n        int64
	score    float64
	line     int64
	position int64
	id       uuid.UUID
	sum      int64
	at       int64
	role     string
	kind     string
	voice    voice
	text     int64
	place    *place
	branches []string
	paths    []string
	partial  bool
	rank     float64

	branchKind string
}
