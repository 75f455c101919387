package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

var queue = sqs.QueueKey{Account: "000000000000", Name: "q"}

// bubbleConfig is for a node in a bubble: in memory, with the bubble's time.
func bubbleConfig() Config {
	began := time.Now()
	return Config{
		InMemory: NewInMemory(),
		Now:      time.Now,
		Elapsed:  func() time.Duration { return time.Since(began) },
		Memory:   1 << 40,
	}
}

// diskConfig is for a node in a new directory.
func diskConfig(t testing.TB) Config {
	return Config{DataDir: t.TempDir(), NodeName: "n1", DiskReserve: 1, Memory: 1 << 40}
}

func start(t testing.TB, c Config) *Node {
	t.Helper()
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, n) })
	return n
}

func stop(t testing.TB, n *Node) {
	t.Helper()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// do proposes a command whose answer is no error.
func do(t testing.TB, n *Node, c raftfsm.Command, bodies ...[]byte) raftfsm.Outcome {
	t.Helper()
	outcome, err := n.Do(t.Context(), c, bodies...)
	if err == nil {
		err = outcome.Err
	}
	if err != nil {
		t.Errorf("%T: %v", c, err)
	}
	return outcome
}

func createQueue(t testing.TB, n *Node, attributes ...sqs.Attribute) {
	t.Helper()
	do(t, n, sqs.CreateQueue{Queue: queue, Attributes: attributes})
}

// sendMessage is the command of one message with its body.
func sendMessage(body string, delay time.Duration) (sqs.SendMessageBatch, []byte) {
	id := sqs.MessageID{}
	copy(id[:], body)
	content := sqs.AppendContent(nil, &sqs.Content{MessageID: id, Body: []byte(body)})
	entry := sqs.SendEntry{MessageID: id, Size: len(body), Delay: delay}
	return sqs.SendMessageBatch{Queue: queue, Entries: []sqs.SendEntry{entry}}, content
}

func send(t testing.TB, n *Node, body string, delay time.Duration) {
	t.Helper()
	c, content := sendMessage(body, delay)
	do(t, n, c, content)
}

// receiveOne is a receive of one message with its own visibility timeout.
func receiveOne(visibility time.Duration) sqs.ReceiveMessage {
	return sqs.ReceiveMessage{Queue: queue, MaxMessages: 1, VisibilityTimeout: visibility}
}

func receive(t testing.TB, n *Node, wait time.Duration) Delivery {
	t.Helper()
	d, err := n.Receive(t.Context(), receiveOne(30*time.Second), wait, nil)
	if err != nil {
		t.Error(err)
	}
	return d
}

func bodyOf(t testing.TB, m Message) string {
	t.Helper()
	content, err := sqs.ParseContent(m.Content)
	if err != nil {
		t.Error(err)
	}
	return string(content.Body)
}

func TestSendReceiveDelete(t *testing.T) {
	n := start(t, diskConfig(t))
	createQueue(t, n)
	send(t, n, "hello", 0)
	d := receive(t, n, 0)
	if len(d.Messages) != 1 || d.Index == 0 {
		t.Fatalf("got %d messages at index %d, want 1", len(d.Messages), d.Index)
	}
	m := d.Messages[0]
	if got := bodyOf(t, m); got != "hello" || m.ReceiveCount != 1 {
		t.Errorf("got %q with receive count %d, want hello, 1", got, m.ReceiveCount)
	}
	receipt, ok := n.ParseHandle(m.Handle)
	if !ok || receipt != m.Receipt {
		t.Errorf("got receipt %+v, %v from the handle; want %+v", receipt, ok, m.Receipt)
	}
	if _, ok := n.ParseHandle(m.Handle[:len(m.Handle)-1] + "A"); ok && m.Handle[len(m.Handle)-1] != 'A' {
		t.Error("a forged handle was accepted")
	}
	do(t, n, sqs.DeleteMessageBatch{Queue: queue, Receipts: []sqs.Receipt{receipt}})
	if totals := n.Status().Totals; totals.Visible+totals.InFlight != 0 {
		t.Errorf("got %+v after the delete, want no messages", totals)
	}
}

func TestRestartKeepsMessagesLeasesAndCounts(t *testing.T) {
	for _, snapshots := range []bool{false, true} {
		t.Run(fmt.Sprintf("snapshots=%v", snapshots), func(t *testing.T) {
			c := diskConfig(t)
			wall := time.Now()
			c.Now = func() time.Time { return wall }
			if snapshots {
				c.SnapshotEntries = 3
			}
			n := start(t, c)
			createQueue(t, n)
			send(t, n, "leased", 0)
			leased := receive(t, n, 0).Messages[0]
			send(t, n, "waiting", 0)
			send(t, n, "delayed", 10*time.Minute)
			if snapshots {
				awaitSnapshot(t, n)
			}
			id, settings := n.group.id, n.Settings()
			stop(t, n)

			wall = wall.Add(20 * time.Second) // the lease goes on while the node is down
			n = start(t, c)
			if n.group.id != id || n.Settings().ClusterID != settings.ClusterID {
				t.Errorf("got raft id %s of cluster %s, want %+v", n.group.id, n.Settings().ClusterID, id)
			}
			totals := n.Status().Totals
			if totals.Visible != 1 || totals.InFlight != 1 || totals.Delayed != 1 {
				t.Errorf("got %+v, want 1 visible, 1 in flight, 1 delayed", totals)
			}
			if receipt, ok := n.ParseHandle(leased.Handle); !ok || receipt != leased.Receipt {
				t.Error("the handle from before is not known")
			}
			d := receive(t, n, 0)
			if len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != "waiting" {
				t.Fatalf("got %+v, want the message that was waiting", d.Messages)
			}
			stop(t, n)

			wall = wall.Add(15 * time.Second)
			n = start(t, c)
			d = receive(t, n, 0)
			if len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != "leased" || d.Messages[0].ReceiveCount != 2 {
				t.Errorf("got %+v, want the message whose lease is over, for the second time", d.Messages)
			}
		})
	}
}

// awaitSnapshot waits until a snapshot was taken.
func awaitSnapshot(t *testing.T, n *Node) {
	t.Helper()
	for end := time.Now().Add(time.Minute); n.Metrics().Snapshots == 0; {
		if time.Now().After(end) {
			t.Fatal("no snapshot was taken")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestStartRefusesOthersDirectory(t *testing.T) {
	c := diskConfig(t)
	n := start(t, c)
	if _, err := Start(t.Context(), c); err == nil {
		t.Error("two nodes run on one directory")
	}
	stop(t, n)
	c.NodeName = "n2"
	if _, err := Start(t.Context(), c); ExitCode(err) != ExitIdentity {
		t.Errorf("another name: got %v, want exit code %d", err, ExitIdentity)
	}
}

func TestStartAfterCrashInBootstrap(t *testing.T) {
	c := diskConfig(t)
	s, _, err := openStores(c, &histogram{elapsed: bootTime}, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stable.SetUint64(keyCurrentTerm, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	n := start(t, c)
	if ready, reasons := n.Ready(); !ready {
		t.Errorf("not ready: %v", reasons)
	}
}

func TestStartRefusesDirectoryWithoutLog(t *testing.T) {
	c := diskConfig(t)
	s, _, err := openStores(c, &histogram{elapsed: bootTime}, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stable.SetUint64(keyCurrentTerm, 7); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), c); !errors.Is(err, wal.ErrCorrupt) || ExitCode(err) != ExitCorrupt {
		t.Errorf("got %v, want %v", err, wal.ErrCorrupt)
	}
}

func TestSeedIsObeyedOnce(t *testing.T) {
	var logged logBuffer
	c := diskConfig(t)
	c.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	c.Seed = raftfsm.DefaultSettings()
	c.Seed.Region = "eu-central-1"
	n := start(t, c)
	stop(t, n)
	if strings.Contains(logged.String(), "setting differs") {
		t.Errorf("a new cluster differs from its own seed:\n%s", logged.String())
	}
	c.Seed.Region = "us-west-2"
	n = start(t, c)
	if got := n.Settings().Region; got != "eu-central-1" {
		t.Errorf("got region %s, want that of the state", got)
	}
	if got := strings.Count(logged.String(), "setting differs"); got != 1 {
		t.Errorf("got %d differences logged, want 1:\n%s", got, logged.String())
	}
	stop(t, n)
	c.Seed = raftfsm.DefaultSettings()
	stop(t, start(t, c))
	if got := strings.Count(logged.String(), "setting differs"); got != 1 {
		t.Errorf("a node without flags complains of its defaults:\n%s", logged.String())
	}
}

func TestCloseAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := Start(t.Context(), bubbleConfig())
		if err != nil {
			t.Fatal(err)
		}
		createQueue(t, n)
		var polls sync.WaitGroup
		for range 500 {
			polls.Go(func() {
				if d, err := n.Receive(t.Context(), receiveOne(sqs.QueueDefault), 20*time.Second, nil); err != nil || len(d.Messages) > 0 {
					t.Errorf("got %+v, %v; want an empty answer", d, err)
				}
			})
		}
		time.Sleep(time.Second)
		if got := n.Status().Groups[0].ParkedPolls; got != 500 {
			t.Errorf("got %d parked polls, want 500", got)
		}
		begin := time.Now()
		n.Drain()
		polls.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("polls took %v to end, want none", took)
		}
		if ready, reasons := n.Ready(); ready || len(reasons) != 1 {
			t.Errorf("draining: got ready %v, reasons %v", ready, reasons)
		}
		if d := receive(t, n, 20*time.Second); len(d.Messages) > 0 || time.Since(begin) != 0 {
			t.Errorf("a poll that came after waited %v", time.Since(begin))
		}
		send(t, n, "still taken", 0)
		stop(t, n)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("close took %v, want less than 2s", took)
		}
		c, content := sendMessage("late", 0)
		if _, err := n.Do(t.Context(), c, content); !errors.Is(err, ErrNoLeader) {
			t.Errorf("after close: got %v, want %v", err, ErrNoLeader)
		}
	})
}

func TestDoWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, bubbleConfig())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		before := n.Metrics().Commands
		if _, err := n.Do(ctx, sqs.CreateQueue{Queue: queue}); !errors.Is(err, ErrNoLeader) {
			t.Errorf("got %v, want %v", err, ErrNoLeader)
		}
		if n.Metrics().Commands != before {
			t.Error("it was proposed nevertheless")
		}
	})
}

func TestDoRefusesWhatCannotBeEncoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, bubbleConfig())
		c, _ := sendMessage("no body", 0)
		if _, err := n.Do(t.Context(), c); err == nil || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %v, want an error of encoding", err)
		}
	})
}

func TestPulseDropsWhatExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, bubbleConfig())
		createQueue(t, n, sqs.Attribute{Name: sqs.MessageRetentionPeriod, Value: "60"})
		send(t, n, "old", 0)
		before := n.Metrics()
		time.Sleep(59 * time.Second)
		if now := n.Metrics(); now.Commands != before.Commands {
			t.Errorf("%d commands were proposed although nothing was due", now.Commands-before.Commands)
		}
		time.Sleep(time.Minute)
		pulsed := n.Metrics().Commands
		if pulsed == before.Commands || pulsed > before.Commands+3 {
			t.Errorf("got %d pulses, want 1 to 3", pulsed-before.Commands)
		}
		time.Sleep(time.Hour)
		if now := n.Metrics().Commands; now != pulsed {
			t.Errorf("%d more pulses although nothing was due", now-pulsed)
		}
	})
}

func TestInMemoryRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleConfig()
		n, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		createQueue(t, n)
		send(t, n, "kept", 0)
		stop(t, n)
		n = start(t, c)
		if d := receive(t, n, 0); len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != "kept" {
			t.Errorf("got %+v, want the message from before", d.Messages)
		}
	})
}

func TestClusterTimeDoesNotGoBackWithARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleConfig()
		n, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		createQueue(t, n)
		before := n.Now()
		stop(t, n)
		c.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		n = start(t, c)
		if now := n.Now(); now < before {
			t.Errorf("went back by %v with the wall clock", before.Sub(now))
		}
	})
}

func TestSnapshotsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleConfig()
		c.SnapshotEntries = 3
		n, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		createQueue(t, n)
		for i := range 5 {
			send(t, n, fmt.Sprint("message ", i), 0)
		}
		time.Sleep(time.Second)
		if n.Metrics().Snapshots != 1 {
			t.Errorf("got %d snapshots, want 1", n.Metrics().Snapshots)
		}
		if s := n.Status().Groups[0]; s.Snapshot == 0 || s.PendingBytes != 0 {
			t.Errorf("got snapshot %d with %d bytes pending, want all in it", s.Snapshot, s.PendingBytes)
		}
		stop(t, n)
		n = start(t, c)
		time.Sleep(time.Hour)
		if n.Metrics().Snapshots != 0 {
			t.Errorf("got %d snapshots although nothing has changed", n.Metrics().Snapshots)
		}
		for range 5 {
			if d := receive(t, n, 0); len(d.Messages) != 1 {
				t.Errorf("got %d messages, want 1", len(d.Messages))
			}
		}
	})
}

func TestStatus(t *testing.T) {
	c := diskConfig(t)
	c.Version = "test"
	n := start(t, c)
	createQueue(t, n)
	send(t, n, "a", 0)
	send(t, n, "b", time.Minute)
	topic := sns.TopicKey{Account: queue.Account, Name: "t"}
	do(t, n, sns.CreateTopic{Topic: topic})
	do(t, n, sns.Subscribe{Topic: topic, Subscription: sns.SubscriptionID{1}, Protocol: sns.SQS, Endpoint: "arn:aws:sqs:us-east-1:000000000000:q", Owner: topic.Account})
	do(t, n, sns.Subscribe{Topic: topic, Subscription: sns.SubscriptionID{2}, Protocol: sns.HTTP, Endpoint: "http://localhost/", Owner: topic.Account, Token: sns.TokenHash{1}})
	s := n.Status()
	if !s.Ready || s.Role != "leader" || s.Leader != "n1" || s.Term == 0 || s.Version != "test" {
		t.Errorf("got %+v", s)
	}
	g := s.Groups[0]
	if g.Applied == 0 || g.Commit < g.Applied || g.Last < g.Commit || g.First != 1 || g.LogBytes == 0 || g.PendingBytes == 0 {
		t.Errorf("got group %+v", g)
	}
	if want := (sns.Totals{Topics: 1, Confirmed: 1, Pending: 1}); s.Topics != want {
		t.Errorf("got topics %+v, want %+v", s.Topics, want)
	}
	if s.Totals.Queues != 1 || s.Totals.Visible != 1 || s.Totals.Delayed != 1 {
		t.Errorf("got totals %+v, want 1 queue, 1 visible, 1 delayed", s.Totals)
	}
	if s.Disk.State != "ok" || s.Disk.FreeBytes == 0 || s.Disk.FsyncP99 == 0 || s.Memory.RSSBytes == 0 {
		t.Errorf("got disk %+v, memory %+v", s.Disk, s.Memory)
	}
	if off := s.Time.WallOffset; off < -time.Second || off > time.Second {
		t.Errorf("cluster time is %v off the wall clock", off)
	}
	if m := n.Metrics(); m.Entries == 0 || m.Commands < m.Entries || m.EntryBytes == 0 {
		t.Errorf("got metrics %+v", m)
	}
}
