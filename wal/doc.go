// Package wal is what a node keeps on disk: the raft log, raft's term and vote,
// its snapshots, and the bodies of messages. It knows bytes and raft, and
// nothing about queues.
//
//	Log        raft.LogStore         DIR/wal/        tidwall/wal behind a strict wrapper
//	Stable     raft.StableStore      DIR/stable.db   raft-boltdb; its file lock is the node's
//	Snapshots  raft.SnapshotStore    DIR/snapshots/  a directory for each
//	Segments   raftfsm.Bodies        DIR/segments/   bodies in files, each for an interval of numbers
//	Bodies     raftfsm.Bodies                        the same in memory, for a node without a disk
//	Verify, Scan                                     read all of it, change nothing
//
// # The raft log on disk
//
// DIR/wal/FORMAT is the line "holdfast raft log, format 1". It is durable before the
// first record is written, and written again only with a new directory. Without it, a
// directory that has records is refused (ErrFormat), and an empty one is new.
//
// A segment is a file of DIR/wal named by the index of its first record, in 20
// digits. It holds records back to back, each with its length before it; the
// next segment begins once 4 MiB are reached. Integers are little-endian.
//
//	+---------+----------+-------+------+------+------------+--------+---------+----------+------------+------+------+
//	| length  | xxhash64 | index | term | type | appendedAt | extLen | dataLen | position | extensions | data | 0xED |
//	| uvarint |    8     |   8   |  8   |  1   |     8      |   4    |    4    |    4     |            |      |  1   |
//	+---------+----------+-------+------+------+------------+--------+---------+----------+------------+------+------+
//	           \_ of all to the right of it     \_ ns since 1970, 0: none
//
// length counts all to the right of it, so it is at least 46, and zero bytes
// are never a record. position is how many records of the same StoreLogs are
// before it. Behind the last record there may be zeros, written ahead: up to 1
// MiB, and never beyond 4 MiB of the file. A stop takes them off, a start too.
//
// # Why a crash loses nothing that was acknowledged
//
//  1. StoreLogs returns after a sync of the segment, and of the directory if
//     a segment began meanwhile. A segment is synced before the next one is
//     created, so only the last segment can hold bytes that were not synced.
//     OpenLog syncs that one before it reads it, since raft takes all that
//     OpenLog finds for durable, and a process may be killed before its sync.
//  2. Of what was not synced, a crash leaves a prefix, or a file in which whole
//     sectors that were not written read as zeros. OpenLog cuts the last segment
//     at the first record that is not intact if, and only if, what is there looks
//     like that: the record is cut off by the end of the file, or contains an
//     all-zero sector, or ends in zeros, or is whole with its length in such a
//     sector before it; a header all of which is there agrees with the length and
//     the index; and no intact record of a later StoreLogs follows. All else is
//     ErrCorrupt, and nothing is changed.
//  3. The file is cut and synced before the engine opens it, so the engine
//     never sees a record that this room did not verify. Each record is
//     verified again, by checksum and index, when it is read from disk.
//  4. After the first error of a write, a sync or a truncation the state of the
//     file is unknown and the page cache may lie: the log refuses everything
//     and calls Fatal. An fsync is never retried.
//  5. DeleteRange at the front unlinks whole segments, oldest first, so a crash
//     leaves a log without holes. At the back the engine writes the shortened
//     segment as a TEMP file, syncs it, renames it to an END file and removes
//     what it replaces; OpenLog finishes what it finds half done. (START files
//     are the same for the front; older engines leave them.)
//  6. A reset (all entries go, or an entry leaves a gap after a snapshot) builds
//     DIR/wal.new with one empty segment, syncs it, renames DIR/wal to
//     DIR/wal.old, then DIR/wal.new to DIR/wal, with a sync of DIR after each.
//     OpenLog goes forward if DIR/wal is missing, and back otherwise.
//
// # A vote is one record
//
// raft writes a vote in two steps, term and candidate. Stable holds the term in
// memory and writes both with the candidate, so that no crash leaves a new term
// with an old candidate. Every value has a checksum over its key and bytes. The key
// "format" is written first; a store that has a term and no format is refused.
//
// # Snapshots
//
//	DIR/snapshots/<term>-<index>-<unique>/state.bin   what the FSM wrote
//	DIR/snapshots/<term>-<index>-<unique>/meta.json   size and xxhash64 of it, raft's facts, its own xxhash64
//
// The directory has the suffix .tmp until all is synced and it is renamed.
// state.bin is written in pieces of 1 MiB, each synced, so that it does not
// hold up the log. A damaged newest snapshot refuses the start.
//
// A snapshot of a machine whose bodies are in Segments has a third file, the
// manifest:
//
//	DIR/snapshots/<term>-<index>-<unique>/bodies.json the segments; its xxhash64 is in meta.json
//
// # Segments
//
//	DIR/segments/<first number>-<serial>.seg
//
//	magic 8 · frames · pages · first number of each page, 8 each · footer
//
//	frame    number 8 · length 4 · xxhash64 of both and the body 8 · body
//	page     xxhash64 of the rest 8 · first number 8 · offset of its frame 8 ·
//	         64 × (number above the first 4 · end of the frame behind that offset 4)
//	footer   first number 8 · limit 8 · count 8 · end of the frames 8 ·
//	         xxhash64 of the first numbers of the pages 8 · xxhash64 of the footer 8 · magic 8
//
// Integers are little-endian, numbers ascend. The footer's checksum is in the
// manifest. A start reads footers and the first numbers of pages, so that its
// time and its memory are those of 8 bytes for 64 bodies. A read takes one page
// (most often from a cache) and one frame, and verifies both.
//
// # Why a crash loses no body
//
//  1. A body is in the raft log until a snapshot is durable that has it or knows
//     that it is dead.
//  2. A snapshot becomes durable by the rename of its directory, and the sync of
//     the directory above. Before that its segments, their names, its state, its
//     manifest and its meta have been synced, in this order.
//  3. A segment is never changed. It is removed when neither the bodies as they
//     are, nor a kept snapshot, nor an open reader of one, nor a snapshot that is
//     being written refers to it; so the newest durable snapshot has all of its
//     segments at every moment. If it is unknown whether a snapshot is durable
//     (the last sync failed), its segments stay until the next start.
//  4. The next start removes the files that no snapshot names.
//
// # A stream of bodies
//
//	+--------+--------+----------+-------+       +---------+---+----------+-------+
//	| number | length | xxhash64 | bytes |  ...  | 2^64-1  | 8 | xxhash64 | count |
//	|   8    |   4    |    8     |       |       |    8    | 4 |    8     |   8   |
//	+--------+--------+----------+-------+       +---------+---+----------+-------+
//
// The checksum is over number, length and bytes; numbers ascend.
//
// # A snapshot on its way to another node
//
//	magic 8 · size of the state 8 · xxhash64 of the state 8 · state · stream of the bodies of all segments
//
// Its size is known before a byte is read, for raft asks for it. The other
// node's sink writes segments of its own. A body whose checksum is wrong arrives as
// it is, damaged; anything else that is wrong refuses the whole snapshot.
package wal
