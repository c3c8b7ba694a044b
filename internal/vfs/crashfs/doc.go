// Package crashfs is an in-memory [vfs.FS] that models the state that a power cut may lose. It tests a power cut, or a
// failing call, at every operation of a workload.
//
// The program sees the volatile state; syncs create the durable state; between them is the list of unsynced changes.
// [FS.Crash] applies some of that list and returns the disk as the next boot may find it. Every call that changes or
// syncs something is one numbered operation ([FS.Ops]). [FS.CutAt] cuts the power at one of them, [FS.Fail] makes any
// call fail.
//
//	for k := 1; ; k++ {
//		disk := crashfs.New()
//		disk.CutAt(k)
//		acked := workload(disk)
//		for seed := range uint64(50) {
//			verify(disk.Crash(crashfs.Random(seed)), acked)
//		}
//		if !disk.PowerCut() {
//			break // the workload ended before operation k
//		}
//	}
//
// # Content
//
//   - Data that Sync or Datasync covered survives if any name of the file does. Both cover data written before they
//     began. Only Sync covers the modification time. Without Sync, any value that the time had since the last Sync may
//     come back.
//   - Changes of size (truncations, writes past the end) survive in order: a later one only with those before it, since
//     inodes are journaled. An interrupted write may leave the size at a page border.
//   - The data of an unsynced write survives by sector of 512 bytes: all, none, whole pages or any choice of sectors.
//     It is independent of other writes elsewhere in the file (write-back has no order). Within one sector a later
//     write survives only with the earlier ones, because the page cache holds their sum. A sector is never torn.
//   - If size survived and data did not, bytes past the durable end are zero (unwritten extents, delayed allocation).
//     Durable bytes before it keep their old value: no file system zeroes a block that is overwritten in place.
//   - Data written after a truncation that removed its place does not survive without the truncation.
//   - A failed Sync, Datasync or SyncAll marks the data it covered clean, as Linux does. Reads return that data, a
//     later Sync succeeds without making it durable, and a crash may or may not show it. Writing it again makes it
//     dirty again, except in blocks that the failing writes were to add to the file: there no later sync makes anything
//     durable until the file is truncated (ext4 does not convert their unwritten extents). An [errors.ErrUnsupported]
//     error has no such effect.
//   - Each descriptor of the file that was open at such a failure reports it once, at its next sync. So does each FS
//     that existed then, at its next SyncAll. Those syncs fail and make nothing durable. A descriptor opened later
//     reports the failure only if none did before. [FS.FailWriteback] makes the system's own write-back fail. After
//     [FS.Drop], reads no longer return the unwritten data.
//
// # Names
//
//   - A name is durable after SyncDir of its folder, or SyncAll above it. Syncing a file does not make its name
//     durable, nor syncing a folder its own name: POSIX promises neither.
//   - Every unsynced create, mkdir, rename and remove survives independently, except for the rules below: a removal may
//     survive when an earlier creation does not. (ext4 and XFS keep the order of one journal; btrfs logs single
//     folders. Random tries both.)
//   - The changes of one name in one folder survive in order. So a file replaced by rename is the old or the new one
//     intact, never neither.
//   - A rename within a folder is one change. So is a folder's move between folders, since no file system leaves a
//     folder with two parents. A file's move between folders is two changes: the new name and the removal of the old
//     one. Once the file has had a durable name, the second never survives without the first. So the file may have both
//     names but never none. A file created and moved without a sync may have none.
//   - A move survives only if its destination is reachable, and a folder's removal only with all earlier changes within
//     it. Otherwise they would lose durable data.
//   - If a folder's own name is lost, everything below it is lost, synced or not.
//   - A failed SyncDir leaves names unsynced, and a later successful one makes them durable: names are journaled, and a
//     file system whose journal fails stops altogether.
//
// # Not modelled
//
// Torn sectors, firmware that lies about flushes, links, permissions, reuse of inode numbers, files above 64 GiB. Where
// package os and POSIX differ, crashfs does what [os.Root] does on Linux: Rename onto an existing folder gives EEXIST.
package crashfs
