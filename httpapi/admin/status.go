package admin

import (
	"fmt"
	"time"

	"holdfast.internal/cluster"
	"holdfast.internal/raftfsm"
)

// Status is the answer of GET /status. Names and nesting are what operators'
// tools rely on; fields may be added, never renamed.
type Status struct {
	Node      string   `json:"node"`
	ClusterID string   `json:"cluster_id"`
	Version   string   `json:"version"`
	Format    Format   `json:"format"`
	PID       int      `json:"pid"`
	UptimeMS  int64    `json:"uptime_ms"`
	Ready     bool     `json:"ready"`
	Reasons   []string `json:"reasons"`    // why not ready
	SendsHeld []string `json:"sends_held"` // why this node holds back sends and what else makes the state larger: disk, memory, bodies
	Role      string   `json:"role"`       // leader, follower, candidate or nonvoter
	Leader    string   `json:"leader"`     // name of a node; empty when unknown
	Term      uint64   `json:"term"`
	Groups    []Group  `json:"groups"`
	Time      Time     `json:"time"`
	Members   []Member `json:"members"`
	Disk      Disk     `json:"disk"`
	Totals    Totals   `json:"totals"`
	Memory    Memory   `json:"memory"`

	Certificates []Certificate `json:"certificates"`
}

// Certificate is one that others refuse this node for when it expires.
type Certificate struct {
	Name     string    `json:"name"` // peer; peer-ca, of the authority that signed it; api
	NotAfter time.Time `json:"not_after"`
}

// Format is the version of the state: the one in force, and those that this
// program knows.
type Format struct {
	Current uint32 `json:"current"`
	Min     uint32 `json:"min"`
	Max     uint32 `json:"max"`
}

// Group is a raft group as this node sees it. Commit to Snapshot are indexes.
type Group struct {
	Group        int      `json:"group"`
	Role         string   `json:"role"`
	Leader       string   `json:"leader"`
	Term         uint64   `json:"term"`
	Commit       uint64   `json:"commit"`
	Applied      uint64   `json:"applied"`
	Last         uint64   `json:"last"`
	First        uint64   `json:"first"` // the oldest entry on disk
	Snapshot     uint64   `json:"snapshot"`
	LogBytes     int64    `json:"log_bytes"`
	PendingBytes int64    `json:"pending_bytes"` // bodies that are in no snapshot yet
	ParkedPolls  int      `json:"parked_polls"`
	Sessions     int      `json:"sessions"`
	Digests      []Digest `json:"digests"` // ascending; at multiples of 4,096 entries
}

// Digest is the running digest of the state at an index. Two nodes that differ
// at the same index have diverged.
type Digest struct {
	Index uint64 `json:"index"`
	XXH64 string `json:"xxh64"` // 16 hex digits
}

// Time is the cluster's clock beside this machine's.
type Time struct {
	ClusterMS    int64 `json:"cluster_ms"`     // since the Unix epoch
	WallOffsetMS int64 `json:"wall_offset_ms"` // this machine's clock less cluster time
	RatePPM      int64 `json:"rate_ppm"`       // by which cluster time runs fast
}

// Member is a node of the cluster. Index and lag are as of its last answer; the lag of
// one that is not up grows.
type Member struct {
	Name          string `json:"name"`
	ID            string `json:"id"` // its raft id
	Peer          string `json:"peer"`
	Suffrage      string `json:"suffrage"` // voter or nonvoter
	Up            bool   `json:"up"`
	Reason        string `json:"reason"` // why it is not up, and what to do, if this node knows
	Applied       uint64 `json:"applied"`
	LagEntries    uint64 `json:"lag_entries"`     // applied here when it was asked, and not there
	LastContactMS int64  `json:"last_contact_ms"` // age of its last answer; 0: this node, or there was none
	ClockOffsetMS int64  `json:"clock_offset_ms"`
	Version       string `json:"version"`
}

// Disk is the file system under the data folder and the raft log on it.
type Disk struct {
	FreeBytes    int64  `json:"free_bytes"`
	ReserveBytes int64  `json:"reserve_bytes"`
	State        string `json:"state"` // ok, low or failed
	FsyncP50US   int64  `json:"fsync_p50_us"`
	FsyncP99US   int64  `json:"fsync_p99_us"`
	Segments     int    `json:"segments"` // of bodies
	SegmentBytes int64  `json:"segment_bytes"`
	// SnapshotPauseUS is the longest for which a snapshot kept commands waiting
	// since the start.
	SnapshotPauseUS int64 `json:"snapshot_pause_us"`
}

// Totals counts what the state holds.
type Totals struct {
	Queues          int    `json:"queues"`
	Topics          int    `json:"topics"`
	Subscriptions   int    `json:"subscriptions"`
	Visible         int    `json:"visible"`
	InFlight        int    `json:"in_flight"`
	Delayed         int    `json:"delayed"`
	JobsWaiting     int    `json:"jobs_waiting"`
	JobsOldestDueMS int64  `json:"jobs_oldest_due_ms"`
	Damaged         int    `json:"damaged"`        // queues that a panic closed
	DamagedTopics   int    `json:"damaged_topics"` // likewise
	Lost            uint64 `json:"lost"`           // messages whose content is damaged on every node
}

// Memory is what the process uses.
type Memory struct {
	RSSBytes   int64 `json:"rss_bytes"`
	HeapBytes  int64 `json:"heap_bytes"`  // that the last garbage collection left
	LimitBytes int64 `json:"limit_bytes"` // of the heap: above it sends are held
}

// newStatus gives s its names on the wire. Lists are never null.
func newStatus(s cluster.Status) Status {
	return Status{
		Node:      s.Node,
		ClusterID: s.ClusterID,
		Version:   s.Version,
		Format:    Format(s.Format),
		PID:       s.PID,
		UptimeMS:  s.Uptime.Milliseconds(),
		Ready:     s.Ready,
		Reasons:   append([]string{}, s.Reasons...),
		SendsHeld: append([]string{}, s.Held...),
		Role:      s.Role,
		Leader:    s.Leader,
		Term:      s.Term,
		Groups:    each(s.Groups, newGroup),
		Time: Time{
			ClusterMS:    int64(s.Time.Cluster),
			WallOffsetMS: s.Time.WallOffset.Milliseconds(),
			RatePPM:      s.Time.RatePPM,
		},
		Members: each(s.Members, newMember),
		Disk: Disk{
			FreeBytes:    s.Disk.FreeBytes,
			ReserveBytes: s.Disk.ReserveBytes,
			State:        s.Disk.State,
			FsyncP50US:   s.Disk.FsyncP50.Microseconds(),
			FsyncP99US:   s.Disk.FsyncP99.Microseconds(),
			Segments:     s.Disk.Segments,
			SegmentBytes: s.Disk.SegmentBytes,

			SnapshotPauseUS: s.Disk.SnapshotPause.Microseconds(),
		},
		Totals: Totals{
			Queues:        s.Totals.Queues,
			Topics:        s.Topics.Topics,
			Subscriptions: s.Topics.Confirmed + s.Topics.Pending,
			Visible:       s.Totals.Visible,
			InFlight:      s.Totals.InFlight,
			Delayed:       s.Totals.Delayed,
			Damaged:       s.Totals.Damaged,
			DamagedTopics: s.Topics.Damaged,
			Lost:          s.Totals.Lost,
		},
		Memory: Memory(s.Memory),

		Certificates: []Certificate{},
	}
}

func newGroup(g cluster.GroupStatus) Group {
	return Group{
		Group:        g.Group,
		Role:         g.Role,
		Leader:       g.Leader,
		Term:         g.Term,
		Commit:       g.Commit,
		Applied:      g.Applied,
		Last:         g.Last,
		First:        g.First,
		Snapshot:     g.Snapshot,
		LogBytes:     g.LogBytes,
		PendingBytes: g.PendingBytes,
		ParkedPolls:  g.ParkedPolls,
		Sessions:     g.Sessions,
		Digests:      each(g.Digests, newDigest),
	}
}

func newDigest(d raftfsm.IndexedDigest) Digest {
	return Digest{Index: d.Index, XXH64: fmt.Sprintf("%016x", d.Sum)}
}

func newMember(m cluster.MemberStatus) Member {
	return Member{
		Name:          m.Name,
		ID:            m.ID,
		Peer:          m.Peer,
		Suffrage:      m.Suffrage,
		Up:            m.Up,
		Reason:        m.Reason,
		Applied:       m.Applied,
		LagEntries:    m.LagEntries,
		LastContactMS: m.LastContact.Milliseconds(),
		ClockOffsetMS: m.ClockOffset.Milliseconds(),
		Version:       m.Version,
	}
}

func each[A, B any](list []A, f func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, f(a))
	}
	return out
}
