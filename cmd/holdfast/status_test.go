package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"holdfast.internal/httpapi/admin"
)

func TestStatusTable(t *testing.T) {
	up := admin.Status{
		Node: "n1", Version: "v1", ClusterID: "c1", UptimeMS: 3_723_000, Ready: true, Role: "leader", Leader: "n1", Term: 7,
		Groups: []admin.Group{{Applied: 120, Commit: 121, Snapshot: 100, First: 90, Last: 122, LogBytes: 3 << 20, ParkedPolls: 5}},
		Members: []admin.Member{
			{Name: "n1", Peer: "10.0.0.1:4568", Up: true},
			{Name: "n2", Peer: "10.0.0.2:4568", Up: true, LagEntries: 7, LastContactMS: 130},
			{Name: "n3", Peer: "10.0.0.3:4568", LagEntries: 9, LastContactMS: 65_432, Reason: "it has the data of cluster c2"},
			{Name: "n4", Peer: "10.0.0.4:4568", Reason: "no answer in time"},
		},
		Time:   admin.Time{WallOffsetMS: -12},
		Totals: admin.Totals{Queues: 2, Topics: 3, Subscriptions: 9, Visible: 30, InFlight: 4, Delayed: 1},
		Disk:   admin.Disk{State: "low", FreeBytes: 5 << 30, ReserveBytes: 6 << 30, FsyncP50US: 350, FsyncP99US: 1500},
		Memory: admin.Memory{RSSBytes: 80 << 20, HeapBytes: 65 << 20, LimitBytes: 64 << 20},

		SendsHeld: []string{"disk", "memory", "a later reason"},

		Certificates: []admin.Certificate{{Name: "peer", NotAfter: time.Unix(1_900_000_000, 0).UTC()}},
	}
	starting := admin.Status{
		Node: "n2", Role: "follower", Reasons: []string{"no leader", "catching up"},
		Members: []admin.Member{
			{Name: "n3", Peer: "10.0.0.3:4568", Reason: "it has the data of cluster c2"},
			{Name: "n4", Peer: "10.0.0.4:4568", Reason: "connection refused"},
		},
	}
	nodes := []nodeStatus{
		{Admin: "http://a", Status: &up},
		{Admin: "http://b", Status: &starting},
		{Admin: "http://10.0.0.4:4567", Error: "connection refused"},
		{Admin: "http://10.0.0.9:4567", Error: "no such host"},
	}
	nameSilent(nodes)
	datadriven.RunTest(t, "testdata/status", func(t *testing.T, _ *datadriven.TestData) string {
		var table bytes.Buffer
		if err := writeStatusTable(&table, nodes); err != nil {
			t.Error(err)
		}
		return table.String()
	})
}

// TestSilentNodeIsNamed if it can only be one: by its host, or because all others have
// answered.
func TestSilentNodeIsNamed(t *testing.T) {
	for _, test := range []struct {
		name   string
		peers  []string // of n1, which answers, n2 and n3
		silent string   // admin port
		n3     bool     // answers as well
		want   string
	}{
		{"by host", []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}, "http://10.0.0.3:4567", false, "n3"},
		{"the only one left", []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, "http://127.0.0.1:4567", true, "n2"},
		{"one of two on the host", []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, "http://127.0.0.1:4567", false, ""},
		{"nobody knows the host", []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}, "http://admin.example:80", false, ""},
	} {
		var members []admin.Member
		for i, address := range test.peers {
			members = append(members, admin.Member{Name: fmt.Sprintf("n%d", i+1), Peer: address})
		}
		nodes := []nodeStatus{{Admin: test.silent}, {Status: &admin.Status{Node: "n1", Members: members}}}
		if test.n3 {
			nodes = append(nodes, nodeStatus{Status: &admin.Status{Node: "n3", Members: members}})
		}
		if nameSilent(nodes); nodes[0].Node != test.want {
			t.Errorf("%s: got %q, want %q", test.name, nodes[0].Node, test.want)
		}
	}
}
