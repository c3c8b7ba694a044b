// Package pgfs keeps the files of many users in PostgreSQL, 15 or later. An [FS] is a vfs.FS: the engine, its checks and
// its repairs run over it as over a folder. [Migrate] makes the tables, and [Open] takes over a user.
//
// # Tables
//
// The key of each table begins with the user, and each statement concerns one user. entries is the tree, nodes has size and
// time of each file, extents its content: a write is an extent, and where extents overlap, the newest shows. Numbers of nodes
// and extents are handed out in memory, since one process owns a user.
//
// A run of one byte is an extent with that byte and the length of the run. So the blank space after a log costs one small
// row for each doubling, and the engine needs no other way to write its logs. An append is one statement that inserts one
// extent. Message files are not made at all, see vfs.HasViews, and logs are sealed when they are full.
//
// # Objects
//
// With a bucket, see [Attach], sealed extents of 32 KiB and more are objects, and their rows have the names of these. Such a file has
// extents of up to 256 KiB, since each costs a request. The object is there before the row is committed. Rows go without
// their objects, which [Sweep] removes once no row has named them for a while: it is the only one that removes any. A store
// that does not answer is a disk that fails, EIO.
//
// # One owner
//
// The row of a user in owners has a fence, which each [Open] increments. Every write checks it in its own statement, with the
// row locked, so that nothing of an earlier owner is committed once Open reads. That owner learns it from its next write:
// [ErrTaken]. Until then it may read what is no longer true. There is no lease: who may call Open is decided elsewhere.
// Locks are within the process, and make no files.
//
// # Durability
//
// Writes stay in memory until a sync, the last close of a handle for writing, or 1 MiB. Names are committed at once, without
// a wait for the disk. A sync is a transaction that waits. PostgreSQL's log is in the order of commits, so it makes all
// earlier ones durable, and SyncDir and SyncAll need nothing more than one such transaction. owners counts the commits without
// a wait: a database that restarts and has lost one is found out by the next statement, which then fails with [ErrLost].
// After a broken connection it is unknown whether a write was committed: [ErrUnknown]. Like a failed fsync, each of these
// errors is final for the FS.
//
// With a [Group], writes of several users share transactions. Without it, 64 users on two processors reach half of the
// rate of bare inserts, with it, all of it: the commits cost more than the statements.
//
// # Memory
//
// What was read of folders stays in memory, up to 50,000 entries of a user. Files that are open have their list of extents
// there, 1 MiB of content that was read last, and small files whole. A file is read in extents of at most 64 KiB, or 256 KiB of
// an object. Nothing is allocated by a size that a row states: only by rows that are there.
//
// # Encryption
//
// A [Sealer] encrypts content and names; [Keys] has one of Tink. The associated data of an extent names user, node, number,
// place and size, that of a name user and folder, so a row that SQL moves does not open. Such content reads as bytes 0xff:
// the engine's checksums report it as damage, and its repair keeps the rest. A row that is gone without a trace, or a whole
// user set back to an earlier state, is not found out. Sizes, times and the shape of the tree are not encrypted.
package pgfs
