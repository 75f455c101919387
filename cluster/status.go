package cluster

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// Status is what a node says of itself and of the cluster.
type Status struct {
	Node      string
	ClusterID string
	Version   string
	Format    FormatStatus
	PID       int
	Uptime    time.Duration
	Ready     bool
	Reasons   []string // why it is not ready
	Held      []string // why this node holds back what makes the state larger, of HoldReasons
	Role      string   // leader, follower, candidate, nonvoter
	Leader    string   // name of the leader's node; empty if none is known
	Term      uint64
	Groups    []GroupStatus
	Time      TimeStatus
	Members   []MemberStatus
	Disk      DiskStatus
	Totals    sqs.Totals
	Topics    sns.Totals
	Memory    MemoryStatus
}

// FormatStatus is about the versions of the state.
type FormatStatus struct{ Current, Min, Max uint32 }

// GroupStatus is the node's part in one raft group. Indexes are of log entries.
type GroupStatus struct {
	Group        int
	Role         string
	Leader       string
	Term         uint64
	Commit       uint64
	Applied      uint64
	Last         uint64
	First        uint64 // the oldest on disk, which may be before what raft still counts as its log
	Snapshot     uint64
	LogBytes     int64 // on disk
	PendingBytes int64 // bodies that are in no snapshot
	ParkedPolls  int
	Sessions     int
	Digests      []raftfsm.IndexedDigest
}

// TimeStatus is about cluster time.
type TimeStatus struct {
	Cluster    sqs.Time
	WallOffset time.Duration // how far this node's wall clock is ahead
	RatePPM    int64         // by which cluster time runs faster than real time
}

// MemberStatus is one member as this node sees it. What it has applied, and how far
// it was behind, is as of its last answer, whose age is LastContact. Of one that is
// not up the lag grows, since nobody knows better.
type MemberStatus struct {
	Name        string
	ID          string
	Peer        string // address
	Suffrage    string // voter, nonvoter
	Up          bool
	Reason      string        // why it is not up, and what to do, if this node knows
	Applied     uint64        // index
	LagEntries  uint64        // that this node had applied when it asked, and the member had not
	LastContact time.Duration // 0 for this node, and for a member that has never answered
	ClockOffset time.Duration // how far its wall clock is ahead of cluster time
	Version     string
}

// DiskStatus is about the disk of the data directory.
type DiskStatus struct {
	FreeBytes    int64
	ReserveBytes int64
	State        string // ok, low, failed
	FsyncP50     time.Duration
	FsyncP99     time.Duration
	Segments     int
	SegmentBytes int64
	// SnapshotPause is the longest for which a snapshot kept commands waiting
	// since the start.
	SnapshotPause time.Duration
}

// MemoryStatus is about this process. Limit is that of the heap, as the last garbage
// collection left it.
type MemoryStatus struct{ RSSBytes, HeapBytes, LimitBytes int64 }

// Status describes the node as of now.
func (n *Node) Status() Status {
	group := n.group.status()
	group.LogBytes = n.stores.logBytes()
	group.PendingBytes = n.stores.bodies.Pending()
	group.ParkedPolls = int(n.line.parked.Load())
	group.First = n.stores.oldest()
	s := Status{
		Node:      n.config.NodeName,
		ClusterID: n.clusterID(),
		Version:   n.config.Version,
		Format:    FormatStatus{Current: n.machine.Settings().Version, Min: 1, Max: raftfsm.StateVersion},
		PID:       os.Getpid(),
		Uptime:    n.config.Elapsed() - n.startedAt,
		Role:      group.Role,
		Leader:    group.Leader,
		Term:      group.Term,
		Groups:    []GroupStatus{group},
		Time:      n.clock.status(),
		Disk:      n.diskStatus(),
		Held:      n.group.admission.reasons(),
		Memory: MemoryStatus{
			RSSBytes: residentMemory(), HeapBytes: n.gauges.read().heap, LimitBytes: n.config.Memory,
		},
	}
	s.Ready, s.Reasons = n.Ready()
	s.Members = n.memberStatus(group, s.Time.WallOffset)
	n.machine.View(func(v raftfsm.View) {
		s.Totals, s.Topics = v.Queues().Totals(s.Time.Cluster), v.Topics().Totals()
		s.Groups[0].Sessions = v.Sessions()
	})
	return s
}

// memberStatus describes the members by raft's configuration, by name.
func (n *Node) memberStatus(own GroupStatus, wallOffset time.Duration) (list []MemberStatus) {
	for _, server := range n.group.raft.Load().GetConfiguration().Configuration().Servers {
		m := MemberStatus{
			Name: nameOf(server.ID), ID: string(server.ID), Peer: "in-memory", Suffrage: strings.ToLower(server.Suffrage.String()),
		}
		if target, err := peer.ParseTarget(string(server.Address)); err == nil {
			m.Peer = target.Address
		}
		if server.ID == n.group.id {
			m.Up, m.Applied, m.ClockOffset, m.Version = true, own.Applied, wallOffset, n.config.Version
		} else if r, ok := n.members.newest(m.Name); ok {
			m.LastContact = n.config.Elapsed() - r.at
			m.Up, m.Applied, m.Version = m.LastContact <= upFor, r.Applied, r.Version
			m.ClockOffset, _ = n.clock.peerOffset(m.Name)
			m.LagEntries = r.lag
			if !m.Up {
				m.LagEntries = max(own.Applied, r.Applied) - r.Applied
			}
		}
		if err := n.members.silent(m.Name); err != nil && !m.Up {
			m.Reason = silence(err, n.clusterID())
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b MemberStatus) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// FullDigest is that of the state as of now (raftfsm.Machine.FullDigest).
func (n *Node) FullDigest() raftfsm.IndexedDigest { return n.machine.FullDigest() }

func (n *Node) diskStatus() DiskStatus {
	r, segments := n.gauges.read(), n.stores.segments()
	d := DiskStatus{
		FreeBytes: r.free, ReserveBytes: n.config.DiskReserve, State: "ok",
		FsyncP50: n.fsyncs.quantile(0.5), FsyncP99: n.fsyncs.quantile(0.99),
		Segments: segments.Segments, SegmentBytes: segments.Bytes,
		SnapshotPause: n.snapshotter.machine.longest(),
	}
	switch {
	case r.broken:
		d.State = "failed"
	case r.lowDisk:
		d.State = "low"
	}
	return d
}

func (c *clock) status() TimeStatus {
	t := TimeStatus{Cluster: c.now()}
	t.WallOffset, t.RatePPM = c.offset()
	return t
}

// status is what the group itself knows.
func (g *group) status() GroupStatus {
	r := g.raft.Load()
	leader, _, _ := g.leader()
	return GroupStatus{
		Role:     roleName(r.State()),
		Leader:   leader.Name,
		Term:     r.CurrentTerm(),
		Commit:   r.CommitIndex(),
		Applied:  g.machine.AppliedIndex(),
		Last:     r.LastIndex(),
		Snapshot: snapshotIndex(r),
		Digests:  g.machine.Digests(),
	}
}

func roleName(s raft.RaftState) string {
	switch s {
	case raft.Leader:
		return "leader"
	case raft.Candidate:
		return "candidate"
	default:
		return "follower"
	}
}

// snapshotIndex is the index of raft's newest snapshot; 0 if there is none.
func snapshotIndex(r *raft.Raft) uint64 {
	index, _ := strconv.ParseUint(r.Stats()["last_snapshot_index"], 10, 64) // raft has it in no other form
	return index
}
