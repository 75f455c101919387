package sqs

import (
	"encoding/binary"
	"math"
	"slices"
)

// freezeTasks copies the tasks, and the turns of the active one.
func (q *queue) freezeTasks() moveTasks {
	tasks := slices.Clone(q.moveTasks())
	if last := len(tasks) - 1; last >= 0 {
		tasks[last].pace.recent = slices.Clone(tasks[last].pace.recent)
	}
	return tasks
}

func (o origin) appendTo(dst []byte) []byte {
	dst = appendKey(dst, o.source)
	dst = binary.AppendUvarint(dst, uint64(o.passage))
	if o.passage > 0 {
		dst = append(dst, o.task[:]...)
	}
	dst = append(dst, o.copy.Shape)
	if !o.copy.none() {
		dst = o.copy.append(dst)
	}
	return dst
}

func (t *moveTask) appendTo(dst []byte) []byte {
	dst = append(dst, t.id[:]...)
	dst = append(dst, byte(t.status))
	dst = appendBool(dst, t.directed)
	if t.directed {
		dst = appendKey(dst, t.destination)
	}
	for _, n := range []uint64{t.toMove, t.moved, t.limit, uint64(t.maxPerSecond)} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = appendSized(dst, string(t.failure))
	dst = appendTime(dst, t.startedAt)
	if t.status.active() {
		dst = t.pace.appendTo(dst)
	}
	return dst
}

func (p *pace) appendTo(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.earned))
	dst = appendTime(dst, p.at)
	dst = binary.AppendUvarint(dst, uint64(len(p.recent)))
	for _, t := range p.recent {
		dst = appendTime(dst, t.at)
		dst = binary.AppendUvarint(dst, uint64(t.count))
	}
	return dst
}

func (d *decoder) origin() origin {
	o := origin{source: d.key(), passage: uint32(d.number(math.MaxUint32))}
	if o.passage > 0 {
		d.fixed(o.task[:])
	}
	if o.copy.Shape = uint8(d.number(math.MaxInt8)); !o.copy.none() {
		var generation [4]byte
		d.fixed(o.copy.Receiver[:])
		d.fixed(generation[:])
		o.copy.Generation = binary.BigEndian.Uint32(generation[:])
	}
	if (o.passage > 0) != (o.task != TaskID{}) {
		d.fail("task without a passage, or the other way round")
	}
	return o
}

// tasks reads the move tasks of a queue.
func (d *decoder) tasks(now Time) moveTasks {
	var tasks moveTasks
	n := d.count()
	if n > MaxListedTasks {
		d.fail("%d move tasks", n)
	}
	for ; n > 0 && d.err == nil; n-- {
		t := d.task(now)
		if t.status.active() && n > 1 {
			d.fail("active move task before another one")
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func (d *decoder) task(now Time) (t moveTask) {
	d.fixed(t.id[:])
	t.status = MoveTaskStatus(d.number(uint64(TaskFailed)))
	if t.directed = d.bool(); t.directed {
		t.destination = d.key()
	}
	t.toMove, t.moved = d.number(math.MaxUint64), d.number(math.MaxUint64)
	t.limit = d.number(math.MaxUint64)
	t.maxPerSecond = int(d.number(MaxMoveRate))
	t.failure = Code(d.text())
	t.startedAt = d.time()
	if t.status == 0 || t.startedAt > now || t.limit > 0 && t.moved > t.limit {
		d.fail("move task that cannot be")
	}
	if t.status.active() {
		t.pace = d.pace(t.maxPerSecond, now)
	}
	return t
}

func (d *decoder) pace(rate int, now Time) pace {
	p := pace{rate: rate, earned: int(d.number(uint64(rate) * 1000)), at: d.time()}
	if p.at > now {
		d.fail("turn that is yet to come")
	}
	room := p.most()
	for n := d.count(); n > 0 && d.err == nil; n-- {
		t := turn{at: d.time(), count: int(d.number(uint64(room)))}
		last := len(p.recent) - 1
		if t.count == 0 || t.at > p.at || last >= 0 && p.recent[last].at > t.at {
			d.fail("turn that cannot be")
		}
		room -= t.count
		p.recent = append(p.recent, t)
	}
	return p
}
