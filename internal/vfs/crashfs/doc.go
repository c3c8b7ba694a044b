// Package crashfs is a [vfs.FS] in memory that knows which of its state a power cut may take away. It
// exists to try a power cut, or a failing call, at every operation of a workload.
//
// A volatile state is what the program sees; a durable state is what was synced; between them lies the
// list of changes not yet synced. [FS.Crash] takes some of that list and returns the disk as the next
// boot may find it. Every call that changes or syncs something is one numbered operation ([FS.Ops]);
// [FS.CutAt] cuts the power at one of them, [FS.Fail] lets any call fail.
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
//   - What Sync or Datasync covered is there if any name of the file is. Both cover what was written
//     before they began. Only Sync covers the modification time; without it any value the time had
//     since the last Sync may come back.
//   - Changes of size (truncations, writes past the end) survive in order: a later one only with those
//     before it, since inodes are journaled. A write cut in half may leave the size at a page border.
//   - The data of an unsynced write survives by sector of 512 bytes: all, none, whole pages or any
//     choice of sectors, independently of other writes elsewhere in the file (write-back has no order).
//     Within one sector a later write survives only with the earlier ones, because the page cache holds
//     their sum. A sector is never torn.
//   - Where size survived and data did not, bytes past the durable end are zero (unwritten extents, delayed
//     allocation). Durable bytes below it keep their old value: no file system zeroes a block that is
//     overwritten in place.
//   - Data written after a truncation that cut the place away does not survive without the truncation.
//   - A failed Sync, Datasync or SyncAll marks what it covered clean, as Linux does: it can be read, a
//     later Sync succeeds without making it durable, and a crash may or may not show it. Writing it again
//     makes it dirty again. An error that is [errors.ErrUnsupported] has no such effect.
//   - Of such a failure each descriptor of the file that was open then is told once, by its next sync, and so is each FS that was there, by its next
//     SyncAll: both fail then, and make nothing durable. A descriptor that is opened later is told only if nobody was before. [FS.FailWriteback] lets
//     the system fail by itself; after [FS.Drop] what could not be written is not read any more.
//
// # Names
//
//   - A name is durable after SyncDir of its folder, or SyncAll above it. Syncing a file does not make
//     its name durable, nor syncing a folder its own name: POSIX promises neither.
//   - Every unsynced create, mkdir, rename and remove survives or not by itself - a removal may be there
//     and an earlier creation not - save for the rules below. (ext4 and XFS keep the order of one journal;
//     btrfs logs single folders. Random tries both.)
//   - The changes of one name in one folder survive in order, so a file replaced by rename is the old or
//     the new one whole, never neither.
//   - A rename within a folder is one change. So is a folder's move between folders: two parents are
//     something no file system leaves. A file's move between folders is two, the new name and the end of the
//     old one; the second never survives without the first once the file has been durable somewhere, so
//     it may have both names but never none. A file created and moved without a sync may have none.
//   - A move survives only where its destination can be reached, and a folder's removal only with all earlier
//     changes within it; otherwise they would lose what was durable.
//   - A folder whose own name is lost is lost with everything below it, synced or not.
//   - A failed SyncDir leaves names unsynced, and a later one that succeeds makes them durable: names are
//     journaled, and a file system whose journal fails stops altogether.
//
// # Not modelled
//
// Torn sectors, firmware that lies about flushes, links, permissions, inode numbers used again, files
// above 64 GiB. Where package os and POSIX differ, crashfs does what [os.Root] does on Linux: Rename
// onto an existing folder gives EEXIST.
package crashfs
