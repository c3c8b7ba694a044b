package storetest_test

import "slices"

// knownLeak names promises that the product does not keep yet. The test fails when it keeps one, so that the entry goes.
type knownLeak struct {
	removals []string
	kinds    []kind
	states   []string // nil for all
	why      string
	// interrupted says that they are kept unless the removal is interrupted.
	interrupted bool
}

var (
	rewinds   = []string{"rewind, gc, trash empty", "rewind, trash empty"}
	branchRms = []string{"branch rm, gc, trash empty", "branch rm, trash empty"}
	rms       = []string{"rm, gc, trash empty", "rm, trash empty"}

	// journaled are the states in which journals that a purge does not remove have the messages.
	journaled = []string{"fresh", "with files", "closed", "folded", "settled", "legacy", "another history", "externalised"}
)

const (
	whyJournal   = "a purge leaves journals that hold what it removed"
	whyPayload   = "a payload stays until a collection finds no reference to it"
	whySummaries = "the cache of lists keeps the line of a removed context until the next list"
	whyMoment    = "a moment whose sources are named in a blob is not found"
	whyMirror    = "an erase does not find the records and the title that repeat a message"
	whyPack      = "a pack keeps the version of a message that was replaced"
	whyHalf      = "trash empty does not finish what an interrupted one began"
	whyFile      = "a settle after the purge moves the file of the version that a killed writer replaced to the trash"
	whyTemporary = "a purge leaves temporary files of message files"
	whyLog       = "collected.jsonl names the folder of a purged branch"
)

var canaryKnown = []knownLeak{
	{rewinds, []kind{kTail}, journaled, whyJournal, false},
	{rewinds, []kind{kVersion}, journaled, whyJournal, false},
	{branchRms, []kind{kBranchText, kVersion}, journaled, whyJournal, false},
	{branchRms, []kind{kBranch}, nil, whyJournal + "; " + whyLog, false},
	{branchRms, []kind{kBranchNote}, append([]string{"mixed"}, journaled...), whyJournal, false},
	{[]string{"trash empty"}, []kind{kVersion}, journaled, whyJournal, false},
	{[]string{"moment rm, trash empty"}, []kind{kMoment, kVersion}, journaled, whyJournal, false},
	{[]string{"moment rm, trash empty"}, []kind{kMoment}, []string{"archived"}, whyPack, false},
	{[]string{"branch rm, trash empty"}, []kind{kBranchRole}, nil, whyPayload, false},
	{[]string{"rm, trash empty"}, []kind{kResult, kAttachment, kPrompt, kBranchRole}, nil, whyPayload, false},
	{
		[]string{"rm, trash empty"}, []kind{kText, kPacked, kEdited, kAnswer, kMoment, kTail, kNoted, kNote, kBranchText},
		[]string{"externalised"}, whyPayload, false,
	},
	{[]string{"erase"}, []kind{kMoment}, []string{"externalised"}, whyMoment, false},
	{[]string{"rewind, erase"}, []kind{kNote}, []string{"externalised"}, whyMoment, false},
	{
		[]string{"rewind what has a moment, gc, trash empty"}, []kind{kNoted, kNote, kVersion}, []string{"externalised"},
		whyMoment + "; " + whyJournal, false,
	},
	{[]string{"erase a prompt of Codex"}, []kind{kMirror}, nil, whyMirror, false},
	{
		rms, []kind{kTitle, kLabel},
		[]string{"fresh", "with files", "closed", "folded", "settled", "archived", "mixed", "externalised", "legacy"}, whySummaries, false,
	},
	{[]string{"moment rm, trash empty"}, []kind{kMoment}, nil, whyFile, true},
	{[]string{"rewind what has a moment, gc, trash empty"}, []kind{kNoted, kNote, kVersion}, nil, whyJournal + "; " + whyTemporary, true},
	{[]string{"rm, trash empty"}, ofContext(), nil, whyHalf, true},
	{[]string{"rewind, trash empty", "branch rm, trash empty"}, []kind{kTail, kBranch, kBranchText, kBranchNote}, nil, whyHalf, true},
}

// isKnown reports whether a canary is known to be left, by a removal that was interrupted or by one that was not.
func isKnown(st *canaryState, r *removal, k kind, interrupted bool) bool {
	return slices.ContainsFunc(canaryKnown, func(x knownLeak) bool {
		return (interrupted || !x.interrupted) && slices.Contains(x.removals, r.name) && slices.Contains(x.kinds, k) &&
			(x.states == nil || slices.Contains(x.states, st.name))
	})
}
