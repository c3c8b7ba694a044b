package search

import "fmt"

// version of the schema and of the rules that cut terms. An index of another version is rebuilt.
const version = "search/1"

var schema = `
CREATE TABLE about (
	version TEXT NOT NULL, store BLOB NOT NULL, made BLOB NOT NULL,  -- made: random
	changes INTEGER NOT NULL,  -- of contexts.names
	-- How many transactions removed rows because the store lost their messages; and how many of them left no terms in the file.
	lost INTEGER NOT NULL, purged INTEGER NOT NULL
);
CREATE TABLE contexts (
	n INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again
	id BLOB NOT NULL UNIQUE,
	state TEXT,  -- of the context when the rows were complete: see ctxdir.Context.Changes; null while rows are missing
	names TEXT NOT NULL,  -- title, labels, branches and lines
	metadata INTEGER NOT NULL,  -- sum of all of it
	changes INTEGER NOT NULL  -- of rows and metadata
);
CREATE TABLE lines (n INTEGER PRIMARY KEY, context INTEGER NOT NULL, id BLOB NOT NULL, UNIQUE (context, id));
CREATE TABLE messages (
	n INTEGER PRIMARY KEY AUTOINCREMENT,
	line INTEGER NOT NULL, position INTEGER NOT NULL, id BLOB NOT NULL,
	sum INTEGER NOT NULL,  -- of id and time of the committed version
	edited INTEGER NOT NULL,  -- the time of the file, if it was edited by hand; else 0
	at INTEGER NOT NULL, role TEXT NOT NULL, type TEXT NOT NULL,
	voice INTEGER NOT NULL,  -- who says most of it: see voice
	text INTEGER NOT NULL,  -- sum of all words, to show one of several copies
	usage BLOB,  -- what the count of tokens needs: see package usage; null for nothing
	-- what outlines need: see outline.Note
	marks INTEGER NOT NULL, calls BLOB, failed INTEGER NOT NULL, added INTEGER NOT NULL, removed INTEGER NOT NULL, begins TEXT NOT NULL,
	UNIQUE (line, position)
);
CREATE INDEX edits ON messages (line) WHERE edited <> 0;
CREATE INDEX prompts ON messages (line, position) WHERE marks & 1;
CREATE TABLE files (
	message INTEGER NOT NULL, n INTEGER NOT NULL,
	path TEXT NOT NULL, access TEXT NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL, text INTEGER NOT NULL,
	pointer TEXT NOT NULL, payload TEXT NOT NULL,
	PRIMARY KEY (message, n)
) WITHOUT ROWID;
CREATE VIEW paths AS SELECT DISTINCT message, path FROM files WHERE access <> 'named';
CREATE VIRTUAL TABLE terms USING fts5(said, rest, said_stems, rest_stems, scope,
	content='', contentless_delete=1, tokenize="ascii tokenchars '_~'");
INSERT INTO terms(terms, rank) VALUES ('hashsize', 8388608);
` + strips

// strips is the schema of the marks of 64 messages in a row. Triggers keep them as the rows of messages are: whatever
// writes or removes a row does not have to think of them.
var strips = func() string {
	names := []string{"prompts", "replies", "calls", "edits", "failures", "breaks"} // in the order of the marks
	columns, bits, set, clear := "", "", "", ""
	for i, name := range names {
		columns += fmt.Sprintf("%s INTEGER NOT NULL, ", name)
		bits += fmt.Sprintf("((new.marks >> %d) & 1) << (new.position & 63), ", i)
		set += fmt.Sprintf("%[1]s = %[1]s | excluded.%[1]s, ", name)
		clear += fmt.Sprintf("%[1]s = %[1]s & ~(1 << (old.position & 63)), ", name)
	}
	return `
CREATE TABLE strips (line INTEGER NOT NULL, n INTEGER NOT NULL,  -- positions from 64 n
	` + columns + `added INTEGER NOT NULL, removed INTEGER NOT NULL,
	PRIMARY KEY (line, n)) WITHOUT ROWID;
CREATE TRIGGER mark AFTER INSERT ON messages WHEN new.marks <> 0 BEGIN
	INSERT INTO strips VALUES (new.line, new.position >> 6, ` + bits + `new.added, new.removed)
	ON CONFLICT DO UPDATE SET ` + set + `added = added + excluded.added, removed = removed + excluded.removed;
END;
CREATE TRIGGER unmark AFTER DELETE ON messages WHEN old.marks <> 0 BEGIN
	UPDATE strips SET ` + clear + `added = added - old.added, removed = removed - old.removed
	WHERE line = old.line AND n = old.position >> 6;
END;
CREATE TRIGGER unline AFTER DELETE ON lines BEGIN
	DELETE FROM strips WHERE line = old.n;
END;
`
}()
