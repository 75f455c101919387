// Package wal is what a node keeps on disk: the raft log, raft's term and vote,
// and its snapshots; and the body store, which is in memory in this version.
// It knows bytes and raft, and nothing about queues.
//
//	Log        raft.LogStore         DIR/wal/        tidwall/wal behind a strict wrapper
//	Stable     raft.StableStore      DIR/stable.db   raft-boltdb; its file lock is the node's
//	Snapshots  raft.SnapshotStore    DIR/snapshots/  a directory for each
//	Bodies     raftfsm.Bodies                        chunks of consecutive numbers
//	Verify, Scan                                     read all of it, change nothing
//
// # The raft log on disk
//
// A segment is a file of DIR/wal named by the index of its first record, in 20
// digits. It holds records back to back, each with its length before it; the
// next segment begins once 4 MiB are reached. Integers are little-endian.
//
//	+---------+----------+-------+------+------+------------+--------+------------+------+
//	| length  | xxhash64 | index | term | type | appendedAt | extLen | extensions | data |
//	| uvarint |    8     |   8   |  8   |  1   |     8      |   4    |            |      |
//	+---------+----------+-------+------+------+------------+--------+------------+------+
//	           \_ of all to the right of it     \_ ns since 1970, 0: none
//
// length counts all to the right of it, so it is at least 37, and zero bytes
// are never a record.
//
// # Why a crash loses nothing that was acknowledged
//
//  1. StoreLogs returns after an fsync of the segment, and of the directory if
//     a segment began meanwhile. A segment is synced before the next one is
//     created, so only the last segment can hold bytes that were not synced.
//  2. Of what was not synced, a crash leaves a prefix, or a longer file in
//     which whole sectors that were not written read as zeros. OpenLog cuts
//     the last segment at the first record that is not intact if, and only if,
//     what is there looks like that: the record is cut off by the end of the
//     file, or contains an all-zero sector, or ends in zeros; and no intact
//     record follows it. All else is ErrCorrupt, and nothing is changed.
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
// with an old candidate. Every value has a checksum over its key and bytes.
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
// # A stream of bodies
//
//	+--------+--------+----------+-------+       +---------+---+----------+-------+
//	| number | length | xxhash64 | bytes |  ...  | 2^64-1  | 8 | xxhash64 | count |
//	|   8    |   4    |    8     |       |       |    8    | 4 |    8     |   8   |
//	+--------+--------+----------+-------+       +---------+---+----------+-------+
//
// The checksum is over number, length and bytes; numbers ascend.
package wal
