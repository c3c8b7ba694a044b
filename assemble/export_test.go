package assemble

// What tests look at.
var (
	Anchor   = anchor
	Passages = passages
	Plain    = plain
	DatesIn  = datesIn
)
