package moment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
)

// conversation reads lines of a test: "u: " begins what a person says, "a: " what the assistant says, "c: " the message of
// a commit, "t" stands for calls of tools, and "e" for one that changes a file. Other lines continue the text before.
func conversation(script string) (texts []moment.Text) {
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "u: "):
			texts = append(texts, moment.Text{ID: idOf(len(texts)), Voice: "user", Text: line[3:]})
		case strings.HasPrefix(line, "a: "):
			texts = append(texts, moment.Text{ID: idOf(len(texts)), Voice: "assistant", Text: line[3:]})
		case strings.HasPrefix(line, "c: "):
			texts = append(texts, moment.Text{ID: idOf(len(texts)), Voice: moment.Commit, Text: line[3:]})
		case line == "t":
			texts[len(texts)-1].Acts = true
		case line == "e":
			texts[len(texts)-1].Acts, texts[len(texts)-1].Edits = true, true
		default:
			texts[len(texts)-1].Text += "\n" + line
		}
	}
	return texts
}

func idOf(n int) uuid.UUID { return uuid.UUID{15: byte(n + 1)} }

// TestRules: what each rule takes, and from which messages. A line break in the content is shown as " / ".
func TestRules(t *testing.T) {
	for _, test := range []struct {
		name, script string
		want         []string // type, numbers of the messages, content
	}{
		{
			"a reply takes an option by its number",
			"u: The importer runs out of memory.\nt\na: Two ways:\n\n1. Stream the rows through a pipe\n2. Raise the limit of " +
				"the container\n\n" +
				"Which one?\nu: let's do 1",
			[]string{"decision 3,2 Stream the rows through a pipe / let's do 1"},
		},
		{
			"or by its letter, in a heading",
			"u: hm\nt\na: ## Option A: one queue per tenant\nSimple.\n\n## Option B: one queue\nCheap.\nu: go with b",
			[]string{"decision 3,2 Option B: one queue / go with b"},
		},
		{
			"or by counting",
			"u: hm\nt\na: 1. Keep the lock in the file\n2. Ask the server for the lock\nu: the second one please",
			[]string{"decision 3,2 Ask the server for the lock / the second one please"},
		},
		{
			"a terse ruling has the question before it",
			"u: Plan the export.\nt\na: **Should the first version write CSV, or Parquet too?**\nu: csv only for now",
			[]string{"decision 3,2 Should the first version write CSV, or Parquet too? / csv only for now"},
		},
		{
			"assent takes what was recommended",
			"u: Where do the tokens go?\nt\na: Both would work. I'd recommend the keyring, since the file has no protection at " +
				"all.\nu: ok, do that",
			[]string{"decision 3,2 I'd recommend the keyring, since the file has no protection at all. / ok, do that"},
		},
		{
			"numbered answers to numbered questions",
			"u: Go.\nt\na: Before I begin:\n1. Which database does staging have?\n2. How long do sessions live?\nu: 1. the " +
				"shared one\n2. twelve hours",
			[]string{"decision 3,2 Which database does staging have? / the shared one", "decision 3,2 How long do sessions " +
				"live? / twelve hours"},
		},
		{
			"what a tool asked the person",
			"u: Go.\nt\nu: User has answered your questions: \"Where should the button live?\"=\"In the toolbar\", " +
				"\"How would you like to proceed?\"=" +
				"\"Next phase\", \"Which colour should it have?\"=\"You decide\".",
			[]string{"decision 2 Where should the button live? / In the toolbar"},
		},
		{
			"rules that last, wishes, and facts of a person who types in small letters",
			"u: look at the importer\nt\na: It is slow.\nu: never start the server yourself. rows should keep the order of the " +
				"file. our staging runs on an old kernel",
			[]string{"pattern 3 never start the server yourself.", "decision 3 rows should keep the order of the " +
				"file.", "context 3 our staging runs on an old kernel"},
		},
		{
			"what the assistant takes over",
			"u: i don't get this retry\nt\na: Good point — retries belong to the caller, who knows the deadline.\nt\na: Now the tests.",
			[]string{"decision 2,1 retries belong to the caller, who knows the deadline."},
		},
		{
			"a rule in a short message is the message",
			"u: look at the importer\nt\na: It is slow.\nu: this broke again. an empty file must never stop the import",
			[]string{"pattern 3 this broke again. an empty file must never stop the import"},
		},
		{
			"but not what a tool adds to it",
			"u: look at the importer\nt\na: It is slow.\nu: an empty file must never stop the import\n<system-reminder>Always run " +
				"it.</system-reminder>\n> a quotation",
			[]string{"pattern 3 an empty file must never stop the import"},
		},
		{
			"a command with a contrast, after which files change",
			"u: hm\nt\na: It has a header.\nu: use plain text in the header, no markup\ne\na: Done.",
			[]string{"decision 3 use plain text in the header, no markup"},
		},
		{
			"a request with its reason, after which files change",
			"u: could we have a watcher for the settings? that way people can edit them live\na: Yes.\ne\na: Done.",
			[]string{"decision 1 could we have a watcher for the settings? that way people can edit them live"},
		},
		{
			"a short prompt goes on with the task before it",
			"u: show totals in the footer instead of the header\na: I read the footer.\nt\nu: continue\ne\na: Done.",
			[]string{"decision 1 show totals in the footer instead of the header"},
		},
		{
			"what an answer says about a rule, which counts itself",
			"u: rows must keep their order, this is a bug\ne\na: Fixed. `sort` no longer runs, so rows keep their order.",
			[]string{"decision 1 rows must keep their order, this is a bug"},
		},
		{
			"what the assistant accepts, where the person does not say it as a rule",
			"u: retries must belong to the caller\nt\na: Agreed — the library only reports an error.\nt\na: Ok.",
			[]string{"decision 1 retries must belong to the caller"},
		},
		{
			"the two strongest passages of an answer, also before a commit",
			"u: The upload fails.\ne\na: - `flush` now runs before `close`, so no chunk is lost\n- The server answers later, " +
				"because `store` is slow, not the disk\n- `client` no longer waits, so uploads are faster\nc: fix: order\n" +
				"u: thanks a lot for that",
			[]string{
				"solution 2 The server answers later, because `store` is slow, not the disk",
				"solution 2 `flush` now runs before `close`, so no chunk is lost",
			},
		},
		{
			"what a person found out",
			"u: The list flickers.\ne\na: I moved the redraw.\nu: you can undo that, it was actually the log lines that broke the " +
				"screen\ne\na: Undone.",
			[]string{"solution 3 you can undo that, it was actually the log lines that broke the screen"},
		},
		{
			"a fault that is named right before its mend",
			"u: The page stays blank.\nt\na: The proxy doesn't forward the cookie. Let me fix that.\ne\na: It loads.",
			[]string{"solution 2 The proxy doesn't forward the cookie."},
		},
		{
			"a fault some sentences before, with the sentence that it needs",
			"u: Go.\nt\na: The cache keeps `Theme` for each row. So it isn't dropped when the theme changes, because nobody clears " +
				"it. Let me fix that:\ne\na: Ok.",
			[]string{"solution 2 The cache keeps `Theme` for each row. So it isn't dropped when the theme changes, because nobody clears it."},
		},
		{
			"a root cause, and the passages that say most of an answer to the report of a fault",
			"u: The upload fails.\ne\na: Fixed.\n\n**Root cause:** The worker closed the file before the last chunk was " +
				"flushed.\n\n**The fix:**\n- In `upload.go`:\n" +
				"  - `flush` now runs before `close`, so no chunk is lost\n- Ran the tests\n- The name of the worker changes",
			[]string{
				"solution 2 In `upload.go`: `flush` now runs before `close`, so no chunk is lost",
				"solution 2 Root cause: The worker closed the file before the last chunk was flushed.",
			},
		},
		{
			"a choice while files change, with what it is made against",
			"u: Rename the option.\nt\na: I'm going to add `limit` to the file and keep the flag `max` rather than rename every " +
				"caller.\ne\na: Done.",
			[]string{"decision 2 I'm going to add `limit` to the file and keep the flag `max` rather than rename every caller."},
		},
		{
			"what something requires, does not allow, and where it is",
			"u: Where are the logs?\nt\na: The collector requires a token with the right to write. I look at the host.\nt\n" +
				"a: The logs are stored on the host `logs-2`. Their rotation isn't supported by the system there.",
			[]string{
				"context 2 The collector requires a token with the right to write.",
				"context 3 The logs are stored on the host `logs-2`.",
				"context 3 Their rotation isn't supported by the system there.",
			},
		},
		{
			"the message of a commit that says why",
			"u: Go.\nt\na: I commit it.\nc: fix(db): name the database in the health check\n\nWithout a name the check asks for one that\ndoesn't " +
				"exist.\n\nSigned-off-by: me\na: Done.",
			[]string{"solution 3 name the database in the health check / Without a name the check asks for one that doesn't exist."},
		},
		{
			"what a review finds, with its severity",
			"u: Review the change.\nt\na: Two findings:\n\n- **High:** `load` returns an empty list if the folder is missing, so " +
				"callers see no error.\n- The rest is fine.",
			[]string{"solution 2 High: `load` returns an empty list if the folder is missing, so callers see no error."},
		},
		{
			"decisions and risks under their headings, in lists and tables",
			"u: How far are we?\nt\na: ## Key decisions\n- Tokens live in the keyring of the system\n\n| Decision | Reason " +
				"|\n|---|---|\n" +
				"| One writer per store | locks stay simple |\n\n## Risks\n- The sandbox requires a licence in production\n\n## " +
				"Next steps\n- Move the tokens instead of copying them",
			[]string{
				"decision 2 Tokens live in the keyring of the system", "decision 2 One writer per store | locks stay simple",
				"context 2 The sandbox requires a licence in production",
			},
		},
		{
			"a choice against something, a convention, and a limit",
			"u: Add the cache.\nt\na: I kept the map in memory rather than a second file, because a restart is rare. The names " +
				"follow the same pattern as the other " +
				"caches. The suite is blocked here because the machine has no Docker.",
			[]string{
				"decision 2 I kept the map in memory rather than a second file, because a restart is rare.",
				"pattern 2 The names follow the same pattern as the other caches.",
				"context 2 The suite is blocked here because the machine has no Docker.",
			},
		},
		{
			"the same again is no second moment",
			"u: Go.\nt\na: We decided to write the log before the index.\nu: ok\na: As said: we decided to write the log before " +
				"the index.",
			[]string{"decision 2 We decided to write the log before the index."},
		},
	} {
		if got := found(t, test.script); !slices.Equal(got, sorted(test.want)) {
			t.Errorf("%s:\n got %q\nwant %q", test.name, got, sorted(test.want))
		}
	}
}

// found returns the moments of a conversation as the tests write them.
func found(t *testing.T, script string) (all []string) {
	t.Helper()
	moments, err := moment.Local{}.Moments(t.Context(), conversation(script))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range moments {
		var from []string
		for _, id := range m.From {
			from = append(from, string('0'+rune(id[15])))
		}
		all = append(all, string(m.Type)+" "+strings.Join(from, ",")+" "+strings.ReplaceAll(m.Content, "\n", " / "))
	}
	return sorted(all)
}

func sorted(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}

// TestNoise: what accompanies the work is no moment, though it has the words of one.
func TestNoise(t *testing.T) {
	for name, script := range map[string]string{
		"status": "u: Go.\nt\na: All tests pass now, so the fix is complete. Pushed to `main` because CI is green.",
		"narration": "u: Go.\nt\na: Let me look at the parser instead of the lexer.\nt\na: Now I'll update the " +
			"docs rather than the code.\nt\na: Done.",
		"a plan of the answer": "u: Go.\nt\na: ## Proposed plan\n- Use a map instead of a list, because it is faster\n\n## " +
			"Suggested fix\n- Return `nil` instead of panicking",
		"a guess": "u: It hangs.\nt\na: The root cause might be the lock. The issue is probably that it never " +
			"unlocks.\nt\na: I could not find it.",
		"a command, after which no file changes": "u: make a theme for me, not a dark one, and open it without the preview\nt\na: Done.",
		"a request without a reason":             "u: Go.\ne\na: Done.\nu: can you update the page of the settings\ne\na: Done.",
		"leave to repair": "u: Go.\nt\na: Found it. Want me to go ahead and fix the `loader` or the cache " +
			"now?\nu: yes, fix it",
		"a commit without a reason": "u: Go.\nt\na: I commit it.\nc: fix: format the page\n\nThe page has two columns of text now.\na: Done.",
		"a commit of documentation": "u: Go.\nt\na: I commit it.\nc: docs: record the plan\n\nThe plan was missing " +
			"because nobody wrote it.\na: Done.",
		"an answer that asks": "u: The import fails.\ne\na: If `rows` loads `files`, but `files` needs `rows`, we get a cycle.\n\nWhich way " +
			"do you prefer?",
		"a cause never mended": "u: It hangs.\nt\na: The lock isn't released after a timeout. Let me fix that.\nt\na: That was not it, I am " +
			"out of ideas.",
		"what a compiler says": "u: Go.\nt\na: The import of the package is missing. Let me fix that.\nt\na: All tests pass.",
		"a quotation": "u: Go.\nt\na: The file says:\n\n> We decided to keep the queue in memory because it is " +
			"fast.\n\n```\nWe decided to use C.\n```",
		"instructions": "u: # AGENTS.md instructions for /src\n\nNever commit to the main branch.\nt\nu: " +
			"<system-reminder>Always run the tests first.</system-reminder>\nt",
		"a compaction": "u: Go.\nt\nu: This session is being continued from a previous conversation. Never commit " +
			"to the main branch.",
		"a skill":             "u: Go.\nt\nu: Base directory for this skill: /x\n\nAlways use the browser.",
		"output of a command": "u: Go.\nt\nu: <local-command-stdout>You must never do that again here.</local-command-stdout>",
		"a chore":             "u: Go.\nt\na: Done.\nu: now you need to fix the tests and push. we should try it again in an hour",
		"a question":          "u: Go.\nt\na: Done.\nu: should we keep the queue in memory instead?",
		"leave to go on": "u: Go.\nt\na: Done. Should I commit it and open a pull request for the branch now?\nu: yes " +
			"please do",
		"a reply to an open question": "u: Go.\nt\na: What happens after the login?\nu: blank page again",
		"a hedged cause":              "u: It hangs.\nt\na: The root cause might be the lock of the queue, which nobody opens.",
		"a reply to no choice":        "u: Go.\nt\na: Does the page stay blank, or does it show an error?\nu: it stays blank",
		"a chat without tools": "u: Why do ships float?\na: They displace water, so the weight is carried. Steel ships " +
			"require air instead of water inside.",
		"a pasted text":       "u: " + strings.Repeat("You must always keep the order of rows. ", 60) + "\nt\na: Fine.",
		"a fragment":          "u: Go.\nt\na: ## Decisions\n- Use it",
		"in another language": "u: Los.\nt\na: Wir behalten die Warteschlange im Speicher, weil ein Neustart selten ist.",
		"an observation": "u: Fix it. You must never use two commands at once.\na: I run it.\n" +
			"u: done\n(Current directory: /repo)\nbash-$\na: It ran.",
		"the assistant permits": "u: Go.\nt\na: You could use a file instead of a map, if you want it to last.",
	} {
		if got := found(t, script); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestMomentsAreVerbatim: each line of a moment is in a message that it names.
func TestMomentsAreVerbatim(t *testing.T) {
	script := "u: Where do tokens go?\nt\na: You’re right — tokens don’t belong into the file, they should live in the " +
		"keyring.\n\n1. Keyring, **always**\n2. File\n" +
		"u: do 1. it's called “vault” here"
	texts := conversation(script)
	moments, err := moment.Local{}.Moments(t.Context(), texts)
	if err != nil || len(moments) < 2 {
		t.Fatalf("%+v, %v", moments, err)
	}
	for _, m := range moments {
		for line := range strings.Lines(m.Content) {
			line = strings.TrimSuffix(line, "\n")
			if !slices.ContainsFunc(m.From, func(id uuid.UUID) bool {
				return strings.Contains(strings.ReplaceAll(texts[id[15]-1].Text, "**", ""), line)
			}) {
				t.Errorf("%q is in none of %v", line, m.From)
			}
		}
	}
}
