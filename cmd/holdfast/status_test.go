package main

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/datadriven"

	"holdfast.internal/httpapi/admin"
)

func TestStatusTable(t *testing.T) {
	up := admin.Status{
		Node: "n1", Version: "v1", ClusterID: "c1", UptimeMS: 3_723_000, Ready: true, Role: "leader", Leader: "n1", Term: 7,
		Groups:  []admin.Group{{Applied: 120, Commit: 121, Snapshot: 100, First: 90, Last: 122, LogBytes: 3 << 20, ParkedPolls: 5}},
		Members: []admin.Member{{Name: "n1", Up: true}, {Name: "n2", Up: true, LagEntries: 7, LastContactMS: 130}, {Name: "n3", LagEntries: 9, LastContactMS: 65_432}, {Name: "n4"}},
		Time:    admin.Time{WallOffsetMS: -12},
		Totals:  admin.Totals{Queues: 2, Topics: 3, Subscriptions: 9, Visible: 30, InFlight: 4, Delayed: 1},
		Disk:    admin.Disk{State: "ok", FreeBytes: 5 << 30, FsyncP50US: 350, FsyncP99US: 1500},
		Memory:  admin.Memory{RSSBytes: 80 << 20},
	}
	starting := admin.Status{Node: "n2", Role: "follower", Reasons: []string{"no leader", "catching up"}}
	nodes := []nodeStatus{
		{Admin: "http://a", Status: &up},
		{Admin: "http://b", Status: &starting},
		{Admin: "http://c", Error: "reach node: connection refused"},
	}
	datadriven.RunTest(t, "testdata/status", func(t *testing.T, _ *datadriven.TestData) string {
		var table bytes.Buffer
		if err := writeStatusTable(&table, nodes); err != nil {
			t.Error(err)
		}
		return table.String()
	})
}
