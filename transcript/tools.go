package transcript

import "strings"

// ToolKind is the kind of a tool, by what a call of it does.
type ToolKind int

// The kinds of tools. Their numbers stand in the search index.
const (
	OtherTool  ToolKind = iota
	ShellTool           // runs a command
	ReadTool            // reads a file or lists a folder
	EditTool            // changes a file
	SearchTool          // looks for files or text
	WebTool             // looks for a page, or reads one
	TodoTool            // keeps a list of tasks
	AgentTool           // starts another agent
	tools               // the number of kinds
)

// Tools is the number of kinds of tools.
const Tools = int(tools)

func (t ToolKind) String() string {
	return [...]string{"other", "shell", "read", "edit", "search", "web", "todo", "agent"}[t]
}

// toolNames are the names of tools in Claude Code, Codex, opencode, Gemini CLI, Copilot CLI, pi and OpenHands, in lower case.
var toolNames = map[ToolKind]string{
	ShellTool: "bash bashoutput killshell killbash shell shell_command local_shell exec_command write_stdin unified_exec container.exec " +
		"run_shell_command execute_bash run run_ipython execute_ipython_cell terminal cmd powershell",
	ReadTool: "read notebookread ls list list_dir list_directory read_file read_many_files view view_image view_file open_file " +
		"read_bash readfile listfiles",
	EditTool: "edit multiedit write notebookedit apply_patch patch multi_edit replace write_file create create_file edit_file " +
		"str_replace str_replace_editor str_replace_based_edit_tool file_editor writefile delete_file",
	SearchTool: "grep glob find search grep_files search_file_content codebase_search file_search tool_search toolsearch rg",
	WebTool: "webfetch websearch web_fetch web_search google_web_search fetch browse browse_interactive browser browser_navigate " +
		"web.run open_url",
	TodoTool: "todowrite todoread update_plan write_todos update_todo todo_write todo task_tracker taskcreate taskupdate tasklist " +
		"taskget set_plan",
	AgentTool: "task agent spawn_agent delegate delegate_task subagent dispatch_agent",
}

var toolsByName = func() map[string]ToolKind {
	all := map[string]ToolKind{}
	for kind, names := range toolNames {
		for name := range strings.FieldsSeq(names) {
			all[name] = kind
		}
	}
	return all
}()

// ToolKind is the kind of the tool that a call uses, [OtherTool] for an unknown name. An editor that can show files counts as
// [ReadTool] where it does.
func (p *Part) ToolKind() ToolKind {
	kind := toolsByName[strings.ToLower(p.Name)]
	if strings.Contains(p.Text, "*** Begin Patch") { // Codex can patch by a command of the shell, too
		return EditTool
	}
	if kind == EditTool && strings.Contains(p.Text, `"view"`) && !p.Edits() {
		return ReadTool
	}
	return kind
}

// Changes counts the lines that the call of a tool adds and removes, as [Part.Diff] shows them. A text above most bytes
// is not compared: it counts nothing.
func (p *Part) Changes(most int) (added, removed int64) {
	if len(p.Text) > most || !p.Edits() {
		return 0, 0
	}
	return CountChanged(p.Diff())
}
