package sqs

import "math"

func (d *decoder) origin() origin {
	o := origin{source: d.key(), passage: uint32(d.number(math.MaxUint32))}
	if o.passage > 0 {
		d.fixed(o.task[:])
	}
	if (o.passage > 0) != (o.task != TaskID{}) {
		d.fail("task without a passage, or the other way round")
	}
	return o
}

// tasks reads the move tasks of a queue.
func (d *decoder) tasks(now Time) []moveTask {
	var tasks []moveTask
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
	t.maxPerSecond = int(d.number(MaxMoveRate))
	t.failure = Code(d.text())
	t.startedAt = d.time()
	if t.status == 0 || t.startedAt > now {
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
