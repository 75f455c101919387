package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/sqs"
)

// someRounds is time enough for whatever a node does without being asked.
const someRounds = 20 * formEvery

// reasons are why node i is not ready, in one line.
func (c *nodes) reasons(i int) string {
	_, reasons := c.list[i].Ready()
	return strings.Join(reasons, ", ")
}

// wipe takes away all that node i, which does not run, has in memory.
func (c *nodes) wipe(i int) { c.configs[i].InMemory = NewInMemory() }

func TestClusterFormsWhenAllAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 3)
		c.start(1)
		c.start(2)
		time.Sleep(someRounds)
		for _, i := range []int{1, 2} {
			if got, want := c.reasons(i), "no cluster yet: n1=n1:1 is not reachable"; got != want {
				t.Errorf("two of three: got %q, want %q", got, want)
			}
		}
		c.start(0)
		c.awaitReady()
		id := c.list[0].clusterID()
		for _, n := range c.list {
			if n.clusterID() != id || n.Settings().ClusterID != id || id == "" {
				t.Errorf("got cluster %q with settings of %q, want both %q", n.clusterID(), n.Settings().ClusterID, id)
			}
			if members := n.Status().Members; len(members) != 3 || members[2].Name != "n3" || members[2].Suffrage != "voter" {
				t.Errorf("got members %+v, want n1 to n3, all voters", members)
			}
		}
	})
}

func TestClusterDoesNotFormOfDifferentLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 3)
		c.configs[2].Members = append([]peer.Target{{Name: "n4", Address: "n4:1"}}, c.configs[2].Members[1:]...)
		for i := range 3 {
			c.start(i)
		}
		time.Sleep(someRounds)
		const want = "n3 was started with --cluster n2=n2:1,n3=n3:1,n4=n4:1"
		for i := range 2 {
			if got := c.reasons(i); !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// TestWipedNodesWait: two of three that lost their data outnumber the one that has
// it, and must not start empty.
func TestWipedNodesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		createQueue(t, c.list[c.awaitLeader()])
		c.awaitApplied()
		id := c.list[2].clusterID()
		for i := range 3 {
			c.stop(i)
		}
		c.wipe(0)
		c.wipe(1)
		c.start(0)
		c.start(1)
		time.Sleep(someRounds) // the third may come late
		for i := range 2 {
			if got := c.reasons(i); !strings.Contains(got, "n3=n3:1 is not reachable") {
				t.Errorf("got %q, want that n3 is not reachable", got)
			}
		}
		c.start(2)
		time.Sleep(someRounds)
		for i := range 2 {
			want := fmt.Sprintf("n3 has the data of cluster %s", id)
			advice := "bring that very folder back"
			if got := c.reasons(i); !strings.Contains(got, want) || !strings.Contains(got, advice) {
				t.Errorf("got %q, want %q and %q", got, want, advice)
			}
			if got := c.list[i].clusterID(); got != "" {
				t.Errorf("n%d is of cluster %s, want none", i+1, got)
			}
		}
		if _, err := c.list[0].Do(t.Context(), sqs.CreateQueue{Queue: queue}); !errors.Is(err, ErrNoLeader) {
			t.Errorf("a wiped node answers %v, want %v", err, ErrNoLeader)
		}
		if got := c.leader(); got >= 0 {
			t.Errorf("n%d leads, want nobody", got+1)
		}
	})
}

// TestNodeOfNoMembersName: it hears that there is no such member, and the members warn of
// it once.
func TestNodeOfNoMembersName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 3)
		var log bytes.Buffer
		c.configs[0].Logger = slog.New(slog.NewTextHandler(&log, nil))
		for i := range 3 {
			c.start(i)
		}
		c.awaitReady()
		stranger := c.configs[2]
		stranger.NodeName, stranger.InMemory, stranger.peerDial = "n4", NewInMemory(), c.lan.dialer("n4:1")
		stranger.Members = append(slices.Clone(stranger.Members), peer.Target{Name: "n4", Address: "n4:1"})
		c.configs, c.list = append(c.configs, stranger), append(c.list, nil)
		id := c.list[0].clusterID()
		c.start(3)
		time.Sleep(someRounds)
		want := fmt.Sprintf("n1 is of cluster %s, which has no member n4", id)
		if got := c.reasons(3); !strings.Contains(got, want) || strings.Count(got, noMemberAdvice) != 1 || strings.Contains(got, leftOutAdvice) {
			t.Errorf("got %q, want %q, and once what to do", got, want)
		}
		c.stop(0)
		if got := strings.Count(log.String(), "a node that is no member"); got != 1 {
			t.Errorf("got %d warnings, want 1: %s", got, log.String())
		}
	})
}

// TestOneWipedNodeWaits: the other two go on without it.
func TestOneWipedNodeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		wiped := c.awaitLeader()
		c.stop(wiped)
		c.wipe(wiped)
		c.start(wiped)
		next := c.awaitLeader()
		time.Sleep(someRounds)
		if got := c.reasons(wiped); strings.Count(got, "has the data of cluster") != 2 || strings.Count(got, leftOutAdvice) != 1 {
			t.Errorf("got %q, want both others, and once what to do", got)
		}
		createQueue(t, c.list[next])
		time.Sleep(someRounds)
		if got := c.reasons(wiped); !strings.Contains(got, "bring that very folder back") {
			t.Errorf("got %q, want the way back in", got)
		}
		if got := c.list[wiped].machine.AppliedIndex(); got != 0 {
			t.Errorf("the wiped node has applied entry %d, want none: it might vote twice", got)
		}
	})
}

// TestFormationSurvivesCrashes stops a node at each of its steps, and starts it
// again.
func TestFormationSurvivesCrashes(t *testing.T) {
	steps := []struct {
		name  string
		write int // which write of the identity fails; 0: none
		entry bool
	}{
		{name: "before the promise", write: 1},
		{name: "within the bootstrap", entry: true},
		{name: "before the end", write: 2},
	}
	for _, step := range steps {
		for i := range 3 {
			t.Run(fmt.Sprintf("n%d %s", i+1, step.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newNodes(t, 3)
					crash := c.plantCrash(i, step.write, step.entry)
					for j := range 3 {
						c.start(j)
					}
					c.await("crash", time.Minute, crash.Load)
					c.kill(i)
					time.Sleep(someRounds)
					c.start(i)
					c.awaitReady()
					for _, n := range c.list {
						if n.clusterID() != c.list[0].clusterID() {
							t.Errorf("got clusters %s and %s, want one", n.clusterID(), c.list[0].clusterID())
						}
					}
					createQueue(t, c.list[c.awaitLeader()])
				})
			})
		}
	}
}

// plantCrash has node i end itself in that write of its identity, or in the entry
// of the bootstrap. The answer is true when it has.
func (c *nodes) plantCrash(i, write int, entry bool) *atomic.Bool {
	crashed, memory := &atomic.Bool{}, c.configs[i].InMemory
	c.configs[i].Fatal = func(int, error) { crashed.Store(true) }
	writes := 0
	memory.identify = func(identity) error {
		if writes++; writes == write {
			return errors.New("crash")
		}
		return nil
	}
	if entry {
		memory.log = &crashingLog{LogStore: memory.log}
	}
	return crashed
}

// crashingLog fails the first write.
type crashingLog struct {
	raft.LogStore
	once atomic.Bool
}

func (l *crashingLog) StoreLog(e *raft.Log) error {
	if !l.once.Swap(true) {
		return errors.New("crash")
	}
	return l.LogStore.StoreLog(e)
}

// TestPromiseIsForGood: a node that lost its data folder while the cluster formed
// cannot be replaced by a blank one of its name.
func TestPromiseIsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 3)
		crash := c.plantCrash(2, 1, false) // n1 and n2 have promised, n3 has not
		for i := range 3 {
			c.start(i)
		}
		c.await("crash", time.Minute, crash.Load)
		c.kill(2)
		c.wipe(2)
		c.start(2)
		time.Sleep(someRounds)
		for i, want := range []string{"n3 has lost its data folder", "n3 has lost its data folder", "n1 is about to form cluster"} {
			if got := c.reasons(i); !strings.Contains(got, want) || !strings.Contains(got, "remove the data folders of all nodes") {
				t.Errorf("n%d: got %q, want %q", i+1, got, want)
			}
		}
	})
}

func TestPromiseIsRefused(t *testing.T) {
	own := standing{Stage: blank, Name: "n1", RaftID: "n1/1", Members: []string{"n1=a:1", "n2=b:1"}}
	founders := []founder{{Name: "n1", Address: "a:1", RaftID: "n1/1"}, {Name: "n2", Address: "b:1", RaftID: "n2/1"}}
	for _, test := range []struct {
		name   string
		change func(s *standing, p *promise)
		want   bool
	}{
		{name: "all is well", change: func(*standing, *promise) {}, want: true},
		{name: "member", change: func(s *standing, _ *promise) { s.Stage = member }},
		{name: "promised", change: func(s *standing, _ *promise) { s.Stage = promised }},
		{name: "no id", change: func(_ *standing, p *promise) { p.ClusterID = "" }},
		{name: "another data folder", change: func(s *standing, _ *promise) { s.RaftID = "n1/2" }},
		{name: "other members", change: func(s *standing, _ *promise) { s.Members[1] = "n2=c:1" }},
		{name: "more members", change: func(s *standing, _ *promise) { s.Members = append(s.Members, "n3=c:1") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, p := own, promise{ClusterID: "c", Founders: founders}
			s.Members = append([]string(nil), own.Members...)
			test.change(&s, &p)
			if got := s.mayPromise(formationRequest{Promise: &p}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestFormationIgnoresWhatItCannotRead(t *testing.T) {
	f := &formation{log: slog.New(slog.DiscardHandler)}
	if got := f.answer(context.Background(), "n2", []byte("{")); got != nil {
		t.Errorf("got %s, want no answer", got)
	}
}
