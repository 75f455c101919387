package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// deadLetters makes a queue and its dead-letter queue, and has messages of these
// bodies moved from the one to the other.
func (s *scene) deadLetters(bodies ...string) (q, dlq string) {
	s.Helper()
	dlq = s.queue()
	q = s.queue("RedrivePolicy", redrive(s.arn(dlq), "1"), "VisibilityTimeout", "0")
	s.dieIn(q, bodies...)
	return q, dlq
}

// dieIn has messages moved to the dead-letter queue of q.
func (s *scene) dieIn(q string, bodies ...string) {
	s.Helper()
	for _, body := range bodies {
		s.send(q, body)
	}
	for range 2 {
		s.receive(q, in{"MaxNumberOfMessages": 10})
	}
	s.counts(q, "0", "0", "0")
}

// startTask starts a move task; more may have a destination and a rate.
func (s *scene) startTask(source string, more in) (taskHandle string) {
	s.Helper()
	return s.ok("StartMessageMoveTask", in{"SourceArn": s.arn(source)}.with(more)).text("TaskHandle")
}

// slowMessages are so many that a task which moves one a second still runs when a
// machine has been busy, or has stood still, for seconds.
const slowMessages = 40

// startSlowTask fills a dead-letter queue and starts a task that moves one message a
// second.
func (s *scene) startSlowTask(dlq, to string) (taskHandle string) {
	s.Helper()
	for sent := 0; sent < slowMessages; sent += 10 {
		var entries []in
		for i := range 10 {
			entries = append(entries, in{"Id": fmt.Sprint(i), "MessageBody": fmt.Sprint(sent + i)})
		}
		s.ok("SendMessageBatch", in{"QueueUrl": dlq, "Entries": entries})
	}
	return s.startTask(dlq, in{"DestinationArn": s.arn(to), "MaxNumberOfMessagesPerSecond": 1})
}

// tasks lists the move tasks of a source.
func (s *scene) tasks(source string) []tree {
	s.Helper()
	return s.ok("ListMessageMoveTasks", in{"SourceArn": s.arn(source), "MaxResults": 10}).list("Results")
}

// taskEnds waits until the latest task of a source has a status, and returns it.
func (s *scene) taskEnds(source, status string) tree {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		tasks := s.tasks(source)
		if len(tasks) == 0 {
			s.Fatal("no task is listed")
		}
		if tasks[0].text("Status") == status {
			return tasks[0]
		}
		if time.Now().After(end) {
			s.Fatalf("got %v, want status %s", tasks[0], status)
		}
	}
}

// hasTask checks members of a task: name, value …; "-" means absent.
func (s *scene) hasTask(task tree, want ...string) {
	s.Helper()
	for i := 0; i < len(want); i += 2 {
		got := task.number(want[i])
		if task.at(want[i]) == nil {
			got = "-"
		}
		if got != want[i+1] {
			s.Errorf("%s: got %q, want %q", want[i], got, want[i+1])
		}
	}
}

var (
	noSource      = fails("ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist.")
	noDestination = fails("ResourceNotFoundException", "The resource that you specified for the DestinationArn parameter doesn't exist.")
)

// D7–D15: move tasks.
func TestMoveTasks(t *testing.T) {
	play(t, []script{
		{id: "D7", title: "a source that is no dead-letter queue", play: func(s *scene) {
			s.refused("StartMessageMoveTask", in{"SourceArn": s.arn(s.queue())}, fails(invalidValue, "Source queue must be configured as a Dead Letter Queue."))
		}},
		{id: "D8", title: "a destination that is not there", play: func(s *scene) {
			_, dlq := s.deadLetters()
			s.refused("StartMessageMoveTask", in{"SourceArn": s.arn(dlq), "DestinationArn": s.arn(dlq) + "-nope"}, noDestination)
		}},
		{id: "D9", title: "to a destination", play: func(s *scene) {
			_, dlq := s.deadLetters("1", "2")
			to := s.queue()
			before := time.Now().UnixMilli()
			s.startTask(dlq, in{"DestinationArn": s.arn(to)})
			task := s.taskEnds(dlq, "COMPLETED")
			s.hasTask(task, "ApproximateNumberOfMessagesMoved", "2", "ApproximateNumberOfMessagesToMove", "2", "TaskHandle", "-",
				"DestinationArn", s.arn(to), "SourceArn", s.arn(dlq), "MaxNumberOfMessagesPerSecond", "-", "FailureReason", "-")
			if started := atoi(s, task.number("StartedTimestamp")); started < before-2000 || started > time.Now().UnixMilli()+2000 {
				s.Errorf("StartedTimestamp: got %d, want milliseconds about %d", started, before)
			}
			s.bodies(s.receive(to, ten), "1", "2")
			s.counts(dlq, "0", "0", "0")
		}},
		{id: "D10", title: "back to where each came from", play: func(s *scene) {
			a, dlq := s.deadLetters("a1", "a2")
			b := s.queue("RedrivePolicy", redrive(s.arn(dlq), "1"), "VisibilityTimeout", "0")
			s.dieIn(b, "b1", "b2")
			s.startTask(dlq, nil)
			s.hasTask(s.taskEnds(dlq, "COMPLETED"), "ApproximateNumberOfMessagesMoved", "4", "DestinationArn", "-")
			s.bodies(s.receive(a, ten), "a1", "a2")
			s.bodies(s.receive(b, ten), "b1", "b2")
		}},
		{id: "D10b", title: "a message that came from nowhere", play: func(s *scene) {
			_, dlq := s.deadLetters()
			s.send(dlq, "x")
			s.startTask(dlq, nil)
			s.hasTask(s.taskEnds(dlq, "FAILED"), "FailureReason", "CouldNotDetermineMessageSource", "ApproximateNumberOfMessagesMoved", "0", "TaskHandle", "-")
			s.bodies(s.receive(dlq), "x")
		}},
		{id: "D11", title: "one a second, and a cancel", play: func(s *scene) {
			q, dlq := s.deadLetters()
			h := s.startSlowTask(dlq, q)
			s.hasTask(s.taskEnds(dlq, "RUNNING"), "TaskHandle", h, "MaxNumberOfMessagesPerSecond", "1",
				"ApproximateNumberOfMessagesToMove", fmt.Sprint(slowMessages))
			s.receive(q, in{"WaitTimeSeconds": 5})
			moved := atoi(s, s.ok("CancelMessageMoveTask", in{"TaskHandle": h}).number("ApproximateNumberOfMessagesMoved"))
			task := s.taskEnds(dlq, "CANCELLED")
			s.hasTask(task, "TaskHandle", "-")
			if got := atoi(s, task.number("ApproximateNumberOfMessagesMoved")); got < moved || moved < 1 || got == slowMessages {
				s.Errorf("moved %d, and %d at the cancel", got, moved)
			}
			s.refused("CancelMessageMoveTask", in{"TaskHandle": h}, fails(invalidValue, "Only active tasks can be cancelled."))
		}},
		{id: "D12", title: "the destination goes", play: func(s *scene) {
			_, dlq := s.deadLetters()
			to := s.queue()
			s.startSlowTask(dlq, to)
			s.one(to, in{"WaitTimeSeconds": 5})
			s.ok("DeleteQueue", in{"QueueUrl": to})
			task := s.taskEnds(dlq, "FAILED")
			s.hasTask(task, "FailureReason", "AWS.SimpleQueueService.NonExistentQueue", "ApproximateNumberOfMessagesToMove", fmt.Sprint(slowMessages))
			left := slowMessages - atoi(s, task.number("ApproximateNumberOfMessagesMoved"))
			s.counts(dlq, fmt.Sprint(left), "0", "0")
		}},
		{id: "D13", title: "one task of a source at a time", play: func(s *scene) {
			q, dlq := s.deadLetters()
			s.startSlowTask(dlq, q)
			s.refused("StartMessageMoveTask", in{"SourceArn": s.arn(dlq)}, fails(invalidValue,
				"There is already a task running. Only one active task is allowed for a source queue arn at a given time."))
		}},
		{id: "D14", title: "handles that are none", play: func(s *scene) {
			_, dlq := s.deadLetters("1")
			h := s.startTask(dlq, nil)
			s.taskEnds(dlq, "COMPLETED")
			s.refused("CancelMessageMoveTask", in{"TaskHandle": "foobared"}, fails(invalidValue, "Value for parameter TaskHandle is invalid."))
			s.refused("CancelMessageMoveTask", in{"TaskHandle": otherHandle(s, h, "sourceArn", s.arn(dlq)+"-nope")}, noSource)
			s.refused("CancelMessageMoveTask", in{"TaskHandle": otherHandle(s, h, "taskId", "00000000-0000-4000-8000-000000000000")},
				fails("ResourceNotFoundException", "Task does not exist."))
			s.refused("CancelMessageMoveTask", in{}, fails(missingParameter))
		}},
		{id: "D15", title: "a redriven message is a new one", play: func(s *scene) {
			q, dlq := s.deadLetters()
			sent := s.send(q, "x", messageAttributes(in{"MyAttribute": text("foobar")}), traceHeader, in{"MessageGroupId": "g"})
			before := s.one(q, allSystem)
			s.none(q)
			time.Sleep(2 * time.Millisecond)
			s.startTask(dlq, nil)
			s.taskEnds(dlq, "COMPLETED")
			m := s.one(q, allSystem, allUser)
			if m.text("MessageId") == sent.text("MessageId") || !uuid.MatchString(m.text("MessageId")) {
				s.Errorf("MessageId: got %q, want another than %q", m.text("MessageId"), sent.text("MessageId"))
			}
			if got, old := m.text("Attributes", "SentTimestamp"), before.text("Attributes", "SentTimestamp"); atoi(s, got) <= atoi(s, old) {
				s.Errorf("SentTimestamp: got %s, want one after %s", got, old)
			}
			for name, want := range map[string]string{
				"ApproximateReceiveCount": "1", "DeadLetterQueueSourceArn": "", "MessageGroupId": "g",
				"AWSTraceHeader": before.text("Attributes", "AWSTraceHeader"),
			} {
				if got := m.text("Attributes", name); got != want {
					s.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if got, want := m.text("MD5OfMessageAttributes"), "adb59cd4678ea5a855436b949cd07ab6"; got != want {
				s.Errorf("MD5OfMessageAttributes: got %s, want %s", got, want)
			}
			s.none(q) // it was received once, so it is a dead letter again
			if again := s.one(dlq, allSystem); again.text("MessageId") != m.text("MessageId") || again.text("Attributes", "DeadLetterQueueSourceArn") != s.arn(q) {
				s.Errorf("got %v, want the message again", again)
			}
		}},
		{id: "FIFO", title: "groups keep their order, deduplication does not matter", play: func(s *scene) {
			dlq := s.fifo()
			q := s.fifo("ContentBasedDeduplication", "true", "RedrivePolicy", redrive(s.arn(dlq), "1"), "VisibilityTimeout", "0")
			var ids []string
			for _, body := range []string{"1", "2", "3"} {
				ids = append(ids, s.send(q, body, in{"MessageGroupId": "g"}).text("MessageId"))
			}
			s.receive(q, ten)
			s.none(q)
			s.refused("StartMessageMoveTask", in{"SourceArn": s.arn(dlq), "DestinationArn": s.arn(s.queue())},
				fails(invalidValue, "The source and destination queue must be of the same queue type."))
			s.startTask(dlq, nil)
			s.taskEnds(dlq, "COMPLETED")
			messages := s.receive(q, ten, allSystem)
			s.bodies(messages, "1", "2", "3")
			for i, m := range messages {
				if got := m.text("Attributes", "MessageDeduplicationId"); got != ids[i] || m.text("MessageId") == ids[i] {
					s.Errorf("got id %s, deduplication id %s; want a new one, and %s", m.text("MessageId"), got, ids[i])
				}
			}
		}},
		{id: "refusals", title: "other refusals", play: func(s *scene) {
			_, dlq := s.deadLetters()
			arn := s.arn(dlq)
			format := func(parameter string) failure {
				return fails(invalidValue, "You must use this format to specify the "+parameter+": arn:<partition>:<service>:<region>:<account-id>:<resource-id>")
			}
			rate := fails(invalidValue, "Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a number that's between 1 and 500.")
			results := fails(invalidValue, "Value for parameter MaxResults is invalid. Reason: You must enter a number that's between 1 and 10.")
			for _, c := range []struct {
				action string
				in     in
				want   failure
			}{
				{"StartMessageMoveTask", in{}, fails(missingParameter, "The request must contain the parameter SourceArn.")},
				{"StartMessageMoveTask", in{"SourceArn": queueName(dlq)}, format("SourceArn")},
				{"StartMessageMoveTask", in{"SourceArn": arn, "DestinationArn": "x"}, format("DestinationArn")},
				{"StartMessageMoveTask", in{"SourceArn": arn, "MaxNumberOfMessagesPerSecond": 0}, rate},
				{"StartMessageMoveTask", in{"SourceArn": arn, "MaxNumberOfMessagesPerSecond": 501}, rate},
				{"StartMessageMoveTask", in{"SourceArn": arn + "-nope"}, noSource},
				{"StartMessageMoveTask", in{"SourceArn": arn, "DestinationArn": arn}, fails(invalidValue, "Source queue arn and destination queue arn cannot be the same.")},
				{"ListMessageMoveTasks", in{}, fails(missingParameter, "The request must contain the parameter SourceArn.")},
				{"ListMessageMoveTasks", in{"SourceArn": "x"}, format("SourceArn")},
				{"ListMessageMoveTasks", in{"SourceArn": arn, "MaxResults": 0}, results},
				{"ListMessageMoveTasks", in{"SourceArn": arn, "MaxResults": 11}, results},
				{"ListMessageMoveTasks", in{"SourceArn": arn + "-nope"}, noSource},
			} {
				s.refused(c.action, c.in, c.want)
			}
			if out := s.ok("ListMessageMoveTasks", in{"SourceArn": arn}); len(out) != 0 {
				s.Errorf("got %v, want nothing", out)
			}
		}},
	})
}

// otherHandle is the handle of a task with one member changed.
func otherHandle(s *scene, handle, name, value string) string {
	s.Helper()
	text, err := base64.StdEncoding.DecodeString(handle)
	members := map[string]string{}
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil || len(members) != 2 || members[name] == "" {
		s.Fatalf("task handle %q: %v, %v", handle, members, err)
	}
	members[name] = value
	text, err = json.Marshal(members)
	if err != nil {
		s.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(text)
}
