package sqs_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"holdfast.internal/sqs"
)

// TestScripts plays the scripts in testdata: each is a conversation with one
// State, every command on a clock that moves only when the script says so.
// Rewrite the expected answers with 'go test ./sqs -run TestScripts -rewrite'.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.play(t, d)
		})
	})
}

// scriptStart is the time at which scripts begin; they show times since then.
const scriptStart sqs.Time = 1_600_000_000_000

const account = "000000000000"

// script is the state of one conversation.
type script struct {
	state    *sqs.State
	at       sqs.Moment
	bodies   map[uint64]string
	receipts map[string]sqs.Receipt // by queue and label
	entries  int                    // sent to FIFO queues
}

func newScript() *script {
	return &script{
		state:    sqs.New(),
		at:       sqs.Moment{Now: scriptStart, NextBody: 1},
		bodies:   map[uint64]string{},
		receipts: map[string]sqs.Receipt{},
	}
}

func key(name string) sqs.QueueKey { return sqs.QueueKey{Account: account, Name: name} }

// play executes one line of a script: a command of SQS, or one of
//
//	advance by=D                     moves the clock
//	rules inflight=N purge=D delete=D dedup=D
//	pulse, damage QUEUE, census, totals, bodies
//	available QUEUE, next QUEUE      what long polls ask
//	peek QUEUE state=S after=N limit=N, describe QUEUE
//	repeat n=N COMMAND …             shows the last answer
//	thaw                             goes on with the state after Freeze and Thaw
func (s *script) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "advance":
		s.at.Now = s.at.Now.Add(duration(t, d, "by", 0))
		return "t=" + since(s.at.Now) + "\n"
	case "rules":
		d.MaybeScanArgs(t, "inflight", &s.at.Rules.InFlightLimit)
		s.at.Rules.PurgeWait = duration(t, d, "purge", 0)
		s.at.Rules.DeleteWait = duration(t, d, "delete", 0)
		s.at.Rules.DedupWindow = duration(t, d, "dedup", 0)
		return ""
	case "pulse":
		events := s.state.Pulse(s.at)
		at, ok := s.state.NextPulse()
		return showEvents(events) + fmt.Sprintf("next: %s\n", maybe(at, ok))
	case "repeat":
		return s.repeat(t, *d)
	case "damage":
		s.state.Damage(queueArg(d))
		return ""
	case "available":
		limit := 100
		d.MaybeScanArgs(t, "limit", &limit)
		return fmt.Sprintln(s.state.Available(queueArg(d), s.at.Now, limit))
	case "next":
		at, ok := s.state.NextAvailable(queueArg(d), s.at.Now)
		return maybe(at, ok) + "\n"
	case "wait-time":
		wait, ok := s.state.WaitTime(queueArg(d))
		return fmt.Sprintln(wait, ok)
	case "census":
		return s.census()
	case "peek":
		return s.peek(t, d)
	case "describe":
		described, ok := s.state.Describe(queueArg(d), s.at.Now)
		return fmt.Sprintf("%t %d attributes, tags %v, sources %v, purged %s\n",
			ok, len(described.Attributes), described.Tags, described.Sources, maybe(described.PurgedAt, described.PurgedAt != 0))
	case "totals":
		return fmt.Sprintf("%+v\n", s.state.Totals(s.at.Now))
	case "bodies":
		var b strings.Builder
		for first, count := range s.state.Freeze().Bodies() {
			fmt.Fprintf(&b, "%d+%d\n", first, count)
		}
		return b.String()
	case "thaw":
		s.state = thaw(t, s.state)
		return ""
	}
	c := s.command(t, d)
	result, events, err := s.state.Apply(s.at, c)
	return s.answer(t, c, result, err) + showEvents(events)
}

func (s *script) repeat(t *testing.T, d datadriven.TestData) (answer string) {
	t.Helper()
	var n int
	d.ScanArgs(t, "n", &n)
	d.Cmd, d.CmdArgs = d.CmdArgs[1].Key, d.CmdArgs[2:]
	for range n {
		answer = s.play(t, &d)
	}
	return answer
}

// thaw returns the state after a round trip, and checks that its encoding is
// the same.
func thaw(t *testing.T, s *sqs.State) *sqs.State {
	t.Helper()
	data := s.Freeze().AppendTo(nil)
	thawed, err := sqs.Thaw(data)
	if err != nil {
		t.Fatalf("thaw: %v", err)
	}
	if again := thawed.Freeze().AppendTo(nil); !bytes.Equal(data, again) {
		t.Fatalf("encoding changed in a round trip\n got %x\nwant %x", again, data)
	}
	return thawed
}

func (s *script) command(t *testing.T, d *datadriven.TestData) sqs.Command {
	t.Helper()
	q := queueArg(d)
	switch d.Cmd {
	case "create":
		attributes, tags := attributeArgs(t, d)
		return sqs.CreateQueue{Queue: q, Attributes: attributes, Tags: tags}
	case "delete-queue":
		return sqs.DeleteQueue{Queue: q}
	case "get-url":
		return sqs.GetQueueUrl{Queue: q}
	case "list":
		c := sqs.ListQueues{Account: account, Limit: 1000}
		d.MaybeScanArgs(t, "prefix", &c.Prefix)
		d.MaybeScanArgs(t, "after", &c.After)
		d.MaybeScanArgs(t, "limit", &c.Limit)
		return c
	case "get":
		return sqs.GetQueueAttributes{Queue: q}
	case "set":
		attributes, _ := attributeArgs(t, d)
		return sqs.SetQueueAttributes{Queue: q, Attributes: attributes}
	case "tag":
		_, tags := attributeArgs(t, d)
		return sqs.TagQueue{Queue: q, Tags: tags}
	case "untag":
		return sqs.UntagQueue{Queue: q, Keys: lines(d)}
	case "tags":
		return sqs.ListQueueTags{Queue: q}
	case "sources":
		c := sqs.ListDeadLetterSourceQueues{Queue: q, Limit: 1000}
		if after := ""; d.HasArg("after") {
			d.ScanArgs(t, "after", &after)
			c.After = key(after)
		}
		d.MaybeScanArgs(t, "limit", &c.Limit)
		return c
	case "purge":
		return sqs.PurgeQueue{Queue: q}
	case "policy":
		c := sqs.ReplacePolicy{Queue: q}
		d.MaybeScanArgs(t, "old", &c.Old)
		d.MaybeScanArgs(t, "new", &c.New)
		return c
	case "mark-damaged": // QUEUE seq=N body=N
		c := sqs.MarkMessageDamaged{Queue: q}
		d.ScanArgs(t, "seq", &c.Sequence)
		d.ScanArgs(t, "body", &c.Body)
		return c
	case "start", "redrive", "cancel", "tasks":
		return taskCommand(t, d, q)
	}
	return s.messageCommand(t, d, q)
}

// taskCommand is a command about move tasks: start SOURCE task=T [to=QUEUE] [rate=N] [limit=N],
// redrive SOURCE task=T seq=N body=N [to=QUEUE], cancel SOURCE task=T, tasks SOURCE [limit=N].
func taskCommand(t *testing.T, d *datadriven.TestData, q sqs.QueueKey) sqs.Command {
	t.Helper()
	if d.Cmd == "tasks" {
		c := sqs.ListMessageMoveTasks{Source: q, Limit: sqs.MaxListedTasks}
		d.MaybeScanArgs(t, "limit", &c.Limit)
		return c
	}
	var id string
	d.ScanArgs(t, "task", &id)
	if d.Cmd == "cancel" {
		return sqs.CancelMessageMoveTask{Source: q, Task: taskID(id)}
	}
	var destination *sqs.QueueKey
	if to := ""; d.HasArg("to") {
		d.ScanArgs(t, "to", &to)
		named := key(to)
		destination = &named
	}
	if d.Cmd == "redrive" {
		c := sqs.RedriveMessage{Source: q, Task: taskID(id), Destination: destination}
		d.ScanArgs(t, "seq", &c.Sequence)
		d.ScanArgs(t, "body", &c.Body)
		return c
	}
	c := sqs.StartMessageMoveTask{Source: q, Task: taskID(id), Destination: destination}
	d.MaybeScanArgs(t, "rate", &c.MaxPerSecond)
	d.MaybeScanArgs(t, "limit", &c.Limit)
	return c
}

func taskID(name string) (id sqs.TaskID) {
	copy(id[:], name)
	return id
}

func (s *script) messageCommand(t *testing.T, d *datadriven.TestData, q sqs.QueueKey) sqs.Command {
	t.Helper()
	switch d.Cmd {
	case "send":
		e := sqs.SendEntry{Size: 1, Delay: duration(t, d, "delay", sqs.QueueDefault)}
		d.MaybeScanArgs(t, "group", &e.GroupID)
		d.MaybeScanArgs(t, "size", &e.Size)
		d.MaybeScanArgs(t, "id", &e.DeduplicationID)
		c := sqs.SendMessageBatch{Queue: q}
		for _, line := range lines(d) {
			c.Entries = append(c.Entries, s.fifoEntry(q, e, line))
		}
		return c
	case "receive":
		c := sqs.ReceiveMessage{Queue: q, MaxMessages: 10, Short: !d.HasArg("long")}
		d.MaybeScanArgs(t, "max", &c.MaxMessages)
		c.VisibilityTimeout = duration(t, d, "timeout", sqs.QueueDefault)
		d.MaybeScanArgs(t, "attempt", &c.AttemptID)
		return c
	case "delete":
		c := sqs.DeleteMessageBatch{Queue: q}
		for _, label := range lines(d) {
			c.Receipts = append(c.Receipts, s.receipt(t, q, label))
		}
		return c
	case "change":
		c := sqs.ChangeMessageVisibilityBatch{Queue: q}
		timeout := duration(t, d, "timeout", 0)
		for _, label := range lines(d) {
			c.Entries = append(c.Entries, sqs.VisibilityEntry{Receipt: s.receipt(t, q, label), Timeout: timeout})
		}
		return c
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return nil
}

// fifoEntry is an entry for one line of a send to a FIFO queue: GROUP/BODY or
// BODY. Its message has a number of its own. Without id=, the deduplication id
// is the number, and with id=body there is none.
func (s *script) fifoEntry(q sqs.QueueKey, e sqs.SendEntry, line string) sqs.SendEntry {
	if !sqs.IsFIFO(q.Name) {
		return e
	}
	if group, body, ok := strings.Cut(line, "/"); ok {
		e.GroupID, line = group, body
	}
	s.entries++
	e.MessageID = sqs.MessageID{byte(s.entries >> 8), byte(s.entries)}
	switch e.DeduplicationID {
	case "":
		e.DeduplicationID = fmt.Sprint(s.entries)
	case "body":
		e.DeduplicationID, e.BodySHA256 = "", sha256.Sum256([]byte(line))
	}
	return e
}

// receipt finds a receipt by its label: the sequence number and the number of
// the receive, and "QUEUE/" before it when it is another queue's.
func (s *script) receipt(t *testing.T, q sqs.QueueKey, label string) sqs.Receipt {
	t.Helper()
	if !strings.Contains(label, "/") {
		label = q.Name + "/" + label
	}
	r, ok := s.receipts[label]
	if !ok {
		t.Fatalf("no receipt %q", label)
	}
	return r
}

func (s *script) answer(t *testing.T, c sqs.Command, result sqs.Result, err *sqs.Error) string {
	t.Helper()
	if err != nil {
		return showError(err)
	}
	var b strings.Builder
	switch r := result.(type) {
	case sqs.Done:
		return "ok\n"
	case sqs.ListQueuesResult:
		fmt.Fprintf(&b, "%s more=%t\n", strings.Join(r.Names, " "), r.More)
	case sqs.GetQueueAttributesResult:
		for _, a := range r.Attributes {
			fmt.Fprintf(&b, "%s=%s\n", a.Name, a.Value)
		}
		fmt.Fprintf(&b, "created %s, modified %s\n", since(r.CreatedAt), since(r.ModifiedAt))
		fmt.Fprintf(&b, "visible %d, in flight %d, delayed %d\n", r.Visible, r.InFlight, r.Delayed)
	case sqs.ListQueueTagsResult:
		for _, tag := range r.Tags {
			fmt.Fprintf(&b, "%s=%s\n", tag.Key, tag.Value)
		}
	case sqs.ListDeadLetterSourceQueuesResult:
		for _, q := range r.Queues {
			fmt.Fprintf(&b, "%s ", q.Name)
		}
		fmt.Fprintf(&b, "more=%t\n", r.More)
	case sqs.CancelMessageMoveTaskResult:
		fmt.Fprintf(&b, "moved %d\n", r.Moved)
	case sqs.RedriveMessageResult:
		fmt.Fprintf(&b, "now %s/%d id=%x\n", r.To.Name, r.Sequence, r.MessageID[:4])
	case sqs.ListMessageMoveTasksResult:
		showTasks(&b, r)
	case sqs.ReplacePolicyResult:
		fmt.Fprintf(&b, "replaced=%t policy=%q\n", r.Replaced, r.Policy)
	case sqs.SendMessageBatchResult:
		s.sent(&b, r)
	case sqs.ReceiveMessageResult:
		s.received(&b, c.Target(), r)
	case sqs.BatchResult:
		for _, e := range r.Errors {
			b.WriteString(showError(e))
		}
	}
	return b.String()
}

func showTasks(b *strings.Builder, r sqs.ListMessageMoveTasksResult) {
	if len(r.Tasks) == 0 {
		b.WriteString("none\n")
	}
	for _, task := range r.Tasks {
		status := map[sqs.MoveTaskStatus]string{
			sqs.TaskRunning: "running", sqs.TaskCompleted: "completed", sqs.TaskCancelling: "cancelling",
			sqs.TaskCancelled: "cancelled", sqs.TaskFailed: "failed",
		}[task.Status]
		fmt.Fprintf(b, "%s %s moved=%d of=%d started=%s", strings.TrimRight(string(task.ID[:]), "\x00"), status, task.Moved, task.ToMove, since(task.StartedAt))
		if task.Destination != nil {
			fmt.Fprintf(b, " to=%s", task.Destination.Name)
		}
		if task.MaxPerSecond != 0 {
			fmt.Fprintf(b, " rate=%d", task.MaxPerSecond)
		}
		if task.FailureReason != "" {
			fmt.Fprintf(b, " because=%s", task.FailureReason)
		}
		b.WriteByte('\n')
	}
}

func (s *script) sent(b *strings.Builder, r sqs.SendMessageBatchResult) {
	for _, e := range r.Entries {
		if e.Err != nil {
			b.WriteString(showError(e.Err))
			continue
		}
		if e.Body == 0 {
			fmt.Fprintf(b, "duplicate of entry %d, seq=%d\n", int(e.MessageID[0])<<8+int(e.MessageID[1]), e.SequenceNumber)
			continue
		}
		s.at.NextBody = e.Body + 1
		s.bodies[e.Body] = fmt.Sprintf("m%d", e.Body)
		fmt.Fprintf(b, "m%d", e.Body)
		if e.SequenceNumber != 0 {
			fmt.Fprintf(b, " entry=%d seq=%d", int(e.MessageID[0])<<8+int(e.MessageID[1]), e.SequenceNumber)
		}
		b.WriteByte('\n')
	}
}

func (s *script) received(b *strings.Builder, q sqs.QueueKey, r sqs.ReceiveMessageResult) {
	if len(r.Messages) == 0 {
		b.WriteString("none\n")
	}
	for _, m := range r.Messages {
		label := fmt.Sprintf("%d.%d", m.Receipt.Sequence, m.Receipt.ReceiveNumber)
		s.receipts[q.Name+"/"+label] = m.Receipt
		fmt.Fprintf(b, "%s handle=%s count=%d sent=%s first=%s", s.bodies[m.Body], label, m.ReceiveCount, since(m.SentAt), since(m.FirstReceivedAt))
		if m.SequenceNumber != 0 {
			fmt.Fprintf(b, " seq=%d", m.SequenceNumber)
		}
		if m.DeadLetterSource != (sqs.QueueKey{}) {
			fmt.Fprintf(b, " from=%s", m.DeadLetterSource.Name)
		}
		if m.Redriven != (sqs.MessageID{}) {
			fmt.Fprintf(b, " id=%x", m.Redriven[:4])
		}
		b.WriteByte('\n')
	}
}

func (s *script) census() string {
	var b strings.Builder
	for _, c := range s.state.Census(s.at.Now) {
		oldest, quiet := "-", "-"
		if c.OldestSentAt != 0 {
			oldest = since(c.OldestSentAt)
		}
		if c.Quiet.OldestSentAt != 0 {
			quiet = since(c.Quiet.OldestSentAt)
		}
		fmt.Fprintf(&b, "%s#%d visible=%d inflight=%d delayed=%d oldest=%s sent=%d bytes=%d received=%d deleted=%d damaged=%t",
			c.Queue.Name, c.Incarnation, c.Visible, c.InFlight, c.Delayed, oldest, c.Sent, c.SentBytes, c.Received, c.Deleted, c.Damaged)
		if c.DeadLetterTarget != (sqs.QueueKey{}) {
			fmt.Fprintf(&b, " target=%s dangling=%t moved=%d stranded=%d", c.DeadLetterTarget.Name, c.Dangling, c.Moved, c.Stranded)
		}
		if sqs.IsFIFO(c.Queue.Name) {
			fmt.Fprintf(&b, " groups-inflight=%d deduplicated=%d", c.GroupsInFlight, c.Deduplicated)
		}
		b.WriteByte('\n')
		if c.NoisyGroups > 0 {
			fmt.Fprintf(&b, "  noisy groups=%d, without them: visible=%d inflight=%d delayed=%d oldest=%s\n",
				c.NoisyGroups, c.Quiet.Visible, c.Quiet.InFlight, c.Quiet.Delayed, quiet)
		}
	}
	return b.String()
}

func (s *script) peek(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	after, limit, state := 0, 10, ""
	d.MaybeScanArgs(t, "after", &after)
	d.MaybeScanArgs(t, "limit", &limit)
	d.MaybeScanArgs(t, "state", &state)
	states := map[string]sqs.MessageState{"visible": sqs.Visible, "inflight": sqs.InFlight, "delayed": sqs.Delayed}
	page, ok := s.state.Peek(queueArg(d), s.at.Now, states[state], uint64(after), limit)
	if !ok {
		return "no such queue\n"
	}
	var b strings.Builder
	for _, m := range page.Messages {
		fmt.Fprintf(&b, "%d: m%d %d group=%q sent=%s", m.Sequence, m.Body, m.State, m.GroupID, since(m.SentAt))
		if m.AvailableAt != 0 {
			fmt.Fprintf(&b, " available=%s", since(m.AvailableAt))
		}
		if m.ReceiveCount > 0 {
			fmt.Fprintf(&b, " count=%d first=%s", m.ReceiveCount, since(m.FirstReceivedAt))
		}
		if m.DeadLetterSource != (sqs.QueueKey{}) {
			fmt.Fprintf(&b, " from=%s arrived=%s", m.DeadLetterSource.Name, since(m.ArrivedAt))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "next=%d more=%t\n", page.Next, page.More)
	return b.String()
}

// queueArg is the first argument, when it has no value; else q.
func queueArg(d *datadriven.TestData) sqs.QueueKey {
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		return key(d.CmdArgs[0].Key)
	}
	return key("q")
}

// attributeArgs are the arguments Name=VALUE; those that are named tag.KEY are
// tags. RedrivePolicy=TARGET:COUNT, RedriveAllowPolicy=allowAll, denyAll or
// byQueue:SOURCE; - stands for an empty value.
func attributeArgs(t *testing.T, d *datadriven.TestData) (attributes []sqs.Attribute, tags []sqs.Tag) {
	t.Helper()
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			continue
		}
		value := arg.Vals[0]
		if value == "-" {
			value = ""
		}
		if name, ok := strings.CutPrefix(arg.Key, "tag."); ok {
			tags = append(tags, sqs.Tag{Key: name, Value: value})
			continue
		}
		attributes = append(attributes, attribute(t, sqs.AttributeName(arg.Key), value))
	}
	slices.SortFunc(attributes, func(a, b sqs.Attribute) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(tags, func(a, b sqs.Tag) int { return cmp.Compare(a.Key, b.Key) })
	return attributes, tags
}

func attribute(t *testing.T, name sqs.AttributeName, value string) sqs.Attribute {
	t.Helper()
	a := sqs.Attribute{Name: name, Value: value}
	first, second, _ := strings.Cut(value, ":")
	switch {
	case value == "":
	case name == sqs.RedrivePolicyAttribute:
		count, err := strconv.Atoi(second)
		if err != nil {
			t.Fatal(err)
		}
		a.Redrive = &sqs.RedrivePolicy{Target: key(first), MaxReceiveCount: count}
		a.Value = fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:%s:%s","maxReceiveCount":%d}`, account, first, count)
	case name == sqs.RedriveAllowPolicyAttribute:
		permission := map[string]sqs.RedrivePermission{"allowAll": sqs.AllowAll, "denyAll": sqs.DenyAll, "byQueue": sqs.ByQueue}[first]
		a.RedriveAllow = &sqs.RedriveAllowPolicy{Permission: permission}
		if permission == sqs.ByQueue {
			a.RedriveAllow.Sources = []sqs.QueueKey{key(second)}
		}
	}
	return a
}

func lines(d *datadriven.TestData) []string {
	return strings.Fields(d.Input)
}

func duration(t *testing.T, d *datadriven.TestData, arg string, otherwise time.Duration) time.Duration {
	t.Helper()
	if !d.HasArg(arg) {
		return otherwise
	}
	var text string
	d.ScanArgs(t, arg, &text)
	parsed, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func since(at sqs.Time) string { return at.Sub(scriptStart).String() }

func maybe(at sqs.Time, ok bool) string {
	if !ok {
		return "never"
	}
	return since(at)
}

func showError(err *sqs.Error) string {
	if err == nil {
		return "ok\n"
	}
	return strings.ReplaceAll(err.Error(), sqs.HandleMark, "<handle>") + "\n"
}

func showEvents(events []sqs.Event) string {
	var b strings.Builder
	moved := 0
	for _, e := range events {
		if e.Kind == sqs.MessageMoved {
			if moved++; moved > 3 {
				continue
			}
			fmt.Fprintf(&b, "event: %s moved m%d to %s/%d\n", e.Queue.Name, e.Move.Body, e.Move.To.Name, e.Move.ToSequence)
			continue
		}
		kind := map[sqs.EventKind]string{
			sqs.MessagesAvailable: "available", sqs.QueueDeleted: "deleted", sqs.DeadLetterTargetMissing: "target missing",
		}[e.Kind]
		fmt.Fprintf(&b, "event: %s %s\n", e.Queue.Name, kind)
	}
	if moved > 3 {
		fmt.Fprintf(&b, "event: and %d more moved\n", moved-3)
	}
	return b.String()
}
