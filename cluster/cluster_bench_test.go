package cluster

import (
	"fmt"
	"net"
	"testing"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/sqs"
)

// startOnDisk starts three nodes in this process, on real disks and loopback, and
// returns the leader and a follower.
func startOnDisk(b *testing.B) (leader, follower *Node) {
	b.Helper()
	var members []peer.Target
	var listeners []net.Listener
	for i := range 3 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		listeners = append(listeners, ln)
		members = append(members, peer.Target{Name: fmt.Sprint("n", i+1), Address: ln.Addr().String()})
	}
	var list []*Node
	for i := range members {
		c := diskConfig(b)
		c.NodeName, c.Members, c.PeerListener = members[i].Name, members, listeners[i]
		list = append(list, start(b, c))
	}
	for end := time.Now().Add(20 * time.Second); leader == nil || follower == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal("no leader")
		}
		leader, follower = nil, nil
		for _, n := range list {
			ready, _ := n.Ready()
			switch {
			case ready && n.group.leading.Load():
				leader = n
			case ready:
				follower = n
			}
		}
	}
	return leader, follower
}

// BenchmarkThrough64 is 64 clients that send messages of 1 KiB to three nodes, all
// through one of them.
func BenchmarkThrough64(b *testing.B) {
	leader, follower := startOnDisk(b)
	createQueue(b, leader)
	c, content := sendMessage(string(make([]byte, 1024)), 0)
	for _, through := range []struct {
		name string
		node *Node
	}{{"leader", leader}, {"follower", follower}} {
		b.Run(through.name, func(b *testing.B) {
			before, cpu := leader.Metrics(), cpuTime()
			b.ReportAllocs()
			inParallel(b, func() error {
				_, err := through.node.Do(b.Context(), c, content)
				return err
			})
			m := leader.Metrics()
			b.ReportMetric(float64(m.Commands-before.Commands)/float64(m.Entries-before.Entries), "commands/entry")
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkCycleThrough64 is 64 clients that send, receive and delete.
func BenchmarkCycleThrough64(b *testing.B) {
	leader, follower := startOnDisk(b)
	createQueue(b, leader)
	c, content := sendMessage(string(make([]byte, 1024)), 0)
	for _, through := range []struct {
		name string
		node *Node
	}{{"leader", leader}, {"follower", follower}} {
		b.Run(through.name, func(b *testing.B) {
			cpu := cpuTime()
			b.ReportAllocs()
			inParallel(b, func() error {
				n := through.node
				if _, err := n.Do(b.Context(), c, content); err != nil {
					return err
				}
				d, err := n.Receive(b.Context(), receiveOne(sqs.QueueDefault), time.Second, nil)
				if err != nil || len(d.Messages) == 0 {
					return err
				}
				_, err = n.Do(b.Context(), sqs.DeleteMessageBatch{Queue: queue, Receipts: []sqs.Receipt{d.Messages[0].Receipt}})
				return err
			})
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}
