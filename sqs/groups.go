package sqs

// group is a MessageGroupId of a FIFO queue that has messages: a chain of
// records in the order of their sequence numbers.
//
// Receives take messages from the head of a group on, up to the first that is
// not visible. So only the first MaxReceivedMessages of a group can ever have
// been hidden, and those are at its head.
type group struct {
	first  rank // what the head is ordered by among groups; see fifo.rankOf
	latest Time // latest end of a lease of a message of the group; 0: none was ever hidden
	head   uint32
	tail   uint32 // both are slots plus one; 0: the group has no message
	fresh  bool   // the head is fresh
}

// neighbours are those of a record in its group, as slots plus one.
type neighbours struct{ prev, next uint32 }

// chains holds the neighbours of records, by their slots.
type chains struct{ pages [][]neighbours }

func (c *chains) at(slot uint32) *neighbours {
	return &c.pages[slot>>recordPageBits][slot&(recordPageSize-1)]
}

// set stores the neighbours of a slot, for which it makes room.
func (c *chains) set(slot uint32, v neighbours) {
	p, i := int(slot>>recordPageBits), int(slot&(recordPageSize-1))
	for len(c.pages) <= p {
		c.pages = append(c.pages, nil)
	}
	for len(c.pages[p]) <= i {
		if p > 0 && c.pages[p] == nil {
			c.pages[p] = make([]neighbours, 0, recordPageSize)
		}
		c.pages[p] = append(c.pages[p], neighbours{})
	}
	c.pages[p][i] = v
}

// groups holds the groups of a FIFO queue, each by the name id of its
// MessageGroupId.
//
// A group with messages is in one of two orders by the time when its head
// became or becomes available. Nothing moves when that time comes: whoever looks
// compares times.
type groups struct {
	names names[string]
	all   []group // of name id n at n-1; empty ones in place of those without messages
	fresh order   // groups whose head was never received; the queue's delay is still to be added
	back  order   // other groups
	busy  order   // groups of which a message was ever hidden, by the latest end of a lease
}

func (g *groups) at(id uint32) *group { return &g.all[id-1] }

func (g *groups) byFirst(id uint32) rank { return g.all[id-1].first }

func (g *groups) byLatest(id uint32) rank {
	return rank{at: g.all[id-1].latest, sequence: g.all[id-1].first.sequence}
}

// use returns the id of a group for one more message.
func (g *groups) use(name string) uint32 {
	id := g.names.use(name)
	for len(g.all) < int(id) {
		g.all = append(g.all, group{})
	}
	return id
}

// next returns the group whose head has been available for the longest time: since
// its send or the end of its delay when it was never received, else since the
// moment at which it became visible again. (This one rule fits the orders of all
// AWS recordings, test_fifo_receive_message_visibility_timeout_shared_in_group
// and others.)
func (g *groups) next(now, window Time) (id uint32, ok bool) {
	id, ok = g.fresh.first()
	best := rank{at: never}
	if ok {
		best = g.byFirst(id)
		best.at += window
	}
	if other, found := g.back.first(); found && g.byFirst(other).compare(best) < 0 {
		id, ok, best = other, true, g.byFirst(other)
	}
	return id, ok && best.at <= now
}

// available counts the groups whose head is visible.
func (g *groups) available(now, window Time) int {
	return g.fresh.below(upTo(now-window), g.byFirst) + g.back.below(upTo(now), g.byFirst)
}

// inFlight counts the groups of which a message is hidden.
func (g *groups) inFlight(now Time) int {
	return g.busy.count - g.busy.below(upTo(now), g.byLatest)
}

// wake is the earliest time after now at which the head of a group becomes
// available, or never.
func (g *groups) wake(now, window Time) Time {
	t := never
	if id, ok := g.fresh.after(upTo(now-window), g.byFirst); ok {
		t = g.byFirst(id).at + window
	}
	if id, ok := g.back.after(upTo(now), g.byFirst); ok {
		t = min(t, g.byFirst(id).at)
	}
	return t
}

// unfile takes a group out of the orders. It must be called before its first
// message changes, or a lease; and fifo.file afterwards.
func (g *groups) unfile(id uint32) {
	gr := g.at(id)
	if gr.head == 0 {
		return
	}
	g.heads(gr.fresh).remove(id, g.byFirst)
	if gr.latest != 0 {
		g.busy.remove(id, g.byLatest)
	}
}

// heads is the order that a group is in, by its head.
func (g *groups) heads(fresh bool) *order {
	if fresh {
		return &g.fresh
	}
	return &g.back
}
