package sqs

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// origin tells how a message came into its queue other than by a send. The
// messages of a queue share it: a record or a list has a name id of it.
type origin struct {
	copy   Copy     // of a message that several may be copies of; else zero
	source QueueKey // of which it is a dead letter
	// task is the latest move task that made a new message of it, passage how
	// often that task has done so, from 1.
	task    TaskID
	passage uint32
}

func (o origin) compare(p origin) int {
	return cmp.Or(
		o.source.compare(p.source), slices.Compare(o.task[:], p.task[:]), cmp.Compare(o.passage, p.passage), o.copy.compare(p.copy),
	)
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
	return origin{task: task, passage: passage, copy: o.copy}
}

// messageID is the id of a message since its latest move by a task; zero when
// there was none. The content is stored once and says under which id it was
// sent, so the new one is derived: from the task, and from the number of the
// content and the copy, which no other message in the task's reach has. It has the
// form of RFC 9562, version 8.
func (o origin) messageID(body uint64) (id MessageID) {
	if o.task == (TaskID{}) {
		return id
	}
	var room [2 * maxSeed]byte
	seed := append(room[:0], o.task[:]...)
	seed = binary.BigEndian.AppendUint32(seed, o.passage)
	seed = binary.BigEndian.AppendUint64(seed, body)
	if !o.copy.none() {
		seed = o.copy.append(seed)
	}
	return derivedID(seed)
}

// maxSeed is more than what the seed of a derived id has from a task, and from a
// copy.
const maxSeed = 32

// derivedID makes an id of RFC 9562, version 8, from a seed.
func derivedID(seed []byte) (id MessageID) {
	sum := sha256.Sum256(seed)
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}
