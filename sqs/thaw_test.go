package sqs

import (
	"errors"
	"slices"
	"testing"
)

// TestThawRefuses encodes states that cannot be, each with one thing wrong.
func TestThawRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(s *State, q *queue, m *messages)
	}{
		{"a run behind the last sequence number", func(_ *State, q *queue, _ *messages) { q.lastSequence-- }},
		{"a record behind the last sequence number", func(_ *State, q *queue, m *messages) {
			q.messages = messages{records: m.records, sequences: m.sequences}
			q.lastSequence = 9
		}},
		{"an incarnation to come", func(s *State, _ *queue, _ *messages) { s.lastIncarnation = 0 }},
		{"a run sent later than now", func(s *State, _ *queue, _ *messages) { s.now = 1002 }},
		{"a record sent later than now", func(s *State, q *queue, m *messages) {
			q.messages = messages{records: m.records, sequences: m.sequences}
			s.now = 1000
		}},
		{"a record without a sequence number of its own", func(_ *State, _ *queue, m *messages) {
			m.records.edit(1).sequence = m.records.at(0).sequence
		}},
		{"a record in a run", func(_ *State, _ *queue, m *messages) { m.records.edit(9).sequence = 15 }},
		{"a run without messages", func(_ *State, _ *queue, m *messages) { m.lists.at(0).chunks[0].runs[3].count = 0 }},
		{"an undelayed list that is not due", func(_ *State, _ *queue, m *messages) { m.lists.at(0).passed-- }},
		{"a delayed list that is due in the middle of a run", func(_ *State, _ *queue, m *messages) { m.lists.at(2).passed++ }},
		{"more due than there is", func(_ *State, _ *queue, m *messages) { m.lists.at(2).passed += 11 }},
		{"two lists of one kind", func(_ *State, _ *queue, m *messages) { m.lists.at(1).group = 0 }},
		{"a body number out of range", func(_ *State, _ *queue, m *messages) { m.records.edit(1).body = 1 << 63 }},
		{"a time out of range", func(_ *State, _ *queue, m *messages) { m.records.edit(1).visibleAt = -1 }},
		{"queues out of order", func(s *State, q *queue, _ *messages) { s.directory = append(s.directory, q) }},
		{"tags out of order", func(_ *State, q *queue, _ *messages) { q.tags = []Tag{{Key: "b"}, {Key: "a"}} }},
		{"reserved names out of order", func(s *State, _ *queue, _ *messages) { s.reserved = make([]reservation, 2) }},
		{"a name reserved twice", func(s *State, _ *queue, _ *messages) {
			s.reserved = []reservation{{1, QueueKey{Name: "x"}}, {2, QueueKey{Name: "x"}}}
		}},
		{"more tasks than are kept", func(_ *State, q *queue, _ *messages) {
			all := slices.Repeat(moveTasks{{status: TaskCompleted}}, MaxListedTasks+1)
			q.tasks = &all
		}},
		{"an active task before another", func(_ *State, q *queue, _ *messages) {
			q.tasks = &moveTasks{{status: TaskRunning}, {status: TaskCompleted}}
		}},
		{"a task without a status", func(_ *State, q *queue, _ *messages) { q.tasks = &moveTasks{{}} }},
		{"a task to come", func(s *State, q *queue, _ *messages) {
			q.tasks = &moveTasks{{status: TaskFailed, startedAt: s.now + 1}}
		}},
		{"a rate out of range", func(_ *State, q *queue, _ *messages) {
			q.tasks = &moveTasks{{status: TaskFailed, maxPerSecond: MaxMoveRate + 1}}
		}},
		{"more moves than the limit", func(_ *State, q *queue, _ *messages) {
			q.tasks = &moveTasks{{status: TaskRunning, limit: 1, moved: 2}}
		}},
		{"more moves due than one second's worth", func(_ *State, q *queue, _ *messages) {
			q.tasks = &moveTasks{{status: TaskRunning, maxPerSecond: 10, pace: pace{rate: 10, earned: 10_001}}}
		}},
		{"more moves in a second than there may be", func(_ *State, q *queue, _ *messages) {
			q.tasks = &moveTasks{{status: TaskRunning, maxPerSecond: 10, pace: pace{rate: 10, recent: []turn{{count: 6}, {count: 6}}}}}
		}},
		{"a turn to come", func(s *State, q *queue, _ *messages) {
			q.tasks = &moveTasks{{status: TaskRunning, maxPerSecond: 10, pace: pace{rate: 10, at: s.now + 1}}}
		}},
		{"turns out of order", func(s *State, q *queue, _ *messages) {
			q.tasks = &moveTasks{{status: TaskRunning, maxPerSecond: 10, pace: pace{rate: 10, at: s.now, recent: []turn{{s.now, 1}, {s.now - 1, 1}}}}}
		}},
		{"two groups of one name", func(_ *State, _ *queue, m *messages) {
			m.groups.entries = append(m.groups.entries, m.groups.entries[0])
		}},
		{"two origins of one name", func(_ *State, _ *queue, m *messages) {
			m.origins.use(origin{source: QueueKey{Name: "x"}})
			m.origins.entries = append(m.origins.entries, m.origins.entries[0])
		}},
		{"a passage of no task", func(_ *State, _ *queue, m *messages) {
			m.records.edit(1).origin = m.origins.use(origin{passage: 1})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := damageable(t)
			q := s.queues[QueueKey{Name: "q"}]
			test.spoil(s, q, &q.messages)
			if _, err := Thaw(s.Freeze().AppendTo(nil)); !errors.Is(err, errThaw) {
				t.Errorf("got %v, want it refused", err)
			}
		})
	}
}

// TestThawRefusesParts cuts an encoding at every byte, and adds one.
func TestThawRefusesParts(t *testing.T) {
	s, _ := damageable(t)
	data := s.Freeze().AppendTo(nil)
	if _, err := Thaw(data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := Thaw(data[:n]); !errors.Is(err, errThaw) {
			t.Errorf("the first %d of %d bytes: got %v, want them refused", n, len(data), err)
		}
	}
	if _, err := Thaw(append(data, 0)); !errors.Is(err, errThaw) {
		t.Errorf("a byte too many: got %v, want it refused", err)
	}
	data[0]++
	if _, err := Thaw(data); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: got %v, want %v", err, ErrVersion)
	}
}
