package sqs

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// origin tells how a message came into its queue other than by a send. The
// messages of a queue share it: a record has a name id of it.
type origin struct {
	source QueueKey // of which it is a dead letter
	// task is the latest move task that made a new message of it, passage how
	// often that task has done so, from 1.
	task    TaskID
	passage uint32
}

func (o origin) compare(p origin) int {
	return cmp.Or(o.source.compare(p.source), slices.Compare(o.task[:], p.task[:]), cmp.Compare(o.passage, p.passage))
}

// deadLetterOf is the origin of a message that is moved from source to its
// dead-letter queue: its id stays what it is.
func (o origin) deadLetterOf(source QueueKey) origin {
	o.source = source
	return o
}

// redrivenBy is the origin of the new message that a task makes of this one.
func (o origin) redrivenBy(task TaskID) origin {
	passage := uint32(1)
	if o.task == task {
		passage = o.passage + 1
	}
	return origin{task: task, passage: passage}
}

// messageID is the id of a message since its latest move by a task; zero when
// there was none. The content is stored once and says under which id it was
// sent, so the new one is derived: from the task, and from the number of the
// content, which no other message in the task's reach has. It has the form of
// RFC 9562, version 8.
func (o origin) messageID(body uint64) (id MessageID) {
	if o.task == (TaskID{}) {
		return id
	}
	var seed [len(o.task) + 12]byte
	n := copy(seed[:], o.task[:])
	binary.BigEndian.PutUint32(seed[n:], o.passage)
	binary.BigEndian.PutUint64(seed[n+4:], body)
	sum := sha256.Sum256(seed[:])
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}
