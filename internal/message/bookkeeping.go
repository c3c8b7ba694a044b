package message

// Roles that importers give to the records of a tool that people do not read. The records are stored like all others;
// lists for people, searches and exports for people leave them out unless asked for.
const (
	RoleBookkeeping = "bookkeeping" // token counts, settings, progress, snapshots
	RoleMirror      = "mirror"      // repeats what another record of the history says
)

// IsBookkeeping reports whether a role is one of a record that people do not read.
func IsBookkeeping(role string) bool { return role == RoleBookkeeping || role == RoleMirror }
