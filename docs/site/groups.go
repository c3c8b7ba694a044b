package main

// A group is a heading of the navigation with the pages below it.
type group struct {
	Name  string
	Pages []entry
}

// An entry is a Markdown file of the repository and its name in the navigation.
type entry struct{ Source, Name string }

// groups has each page once: newSite refuses a file of docs/ that is in no group.
var groups = []group{
	{"Start", []entry{
		{"README.md", "ctxdir"},
		{"docs/TUTORIAL.md", "Tutorial: ctxtool"},
		{"docs/tutorials/history.md", "Tutorial: your history"},
		{"docs/tutorials/framework.md", "Tutorial: your agent"},
		{"docs/tutorials/team.md", "Tutorial: your team"},
		{"docs/COMPARISON.md", "Beside other tools"},
		{"CHANGELOG.md", "Changes"},
	}},
	{"Guides", []entry{
		{"docs/LIBRARY.md", "Go library"},
		{"docs/FRAMEWORKS.md", "Agent frameworks"},
		{"docs/WEB.md", "Web page"},
		{"docs/SEARCH.md", "Search"},
		{"docs/CONTEXT.md", "Context under a budget"},
		{"docs/MOMENTS.md", "Moments"},
		{"docs/REFERENCES.md", "References to code"},
		{"docs/USAGE.md", "Tokens and cost"},
		{"docs/SYNC.md", "Two stores, one history"},
		{"docs/SERVER.md", "A server for a team"},
		{"docs/MCP.md", "Agents: MCP"},
		{"docs/EXCHANGE.md", "Agents: exchange"},
	}},
	{"Reference", []entry{
		{"docs/CLI.md", "ctxtool"},
		{"docs/API.md", "HTTP API"},
		{"docs/FORMAT.md", "Format on disk"},
		{"docs/APPLICATIONS.md", "What applications store"},
		{"docs/LEGACY.md", "Formats of the predecessor"},
		{"docs/RELIABILITY.md", "Reliability"},
		{"docs/SCALE.md", "Scale"},
		{"SECURITY.md", "Security"},
	}},
	{"Internals", []entry{
		{"docs/DESIGN.md", "Design"},
		{"docs/DEPENDENCIES.md", "Dependencies"},
		{"CONTRIBUTING.md", "Contributing"},
		{"docs/MAINTAINERS.md", "Maintainers"},
		{"docs/benchmarks/report.md", "Benchmarks"},
		{"docs/benchmarks/missed.md", "Missed goals"},
		{"docs/benchmarks/proof.md", "Power cuts and kills"},
		{"docs/benchmarks/archive.md", "Benchmarks: archive"},
		{"docs/benchmarks/context.md", "Benchmarks: context"},
		{"docs/benchmarks/follow.md", "Benchmarks: follow"},
		{"docs/benchmarks/modes.md", "Benchmarks: modes"},
		{"docs/benchmarks/replica.md", "Benchmarks: sync"},
		{"docs/benchmarks/search.md", "Benchmarks: search"},
	}},
}
