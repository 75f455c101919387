package sns

import "slices"

// fanOut is a publish on its way to the subscriptions that its topic had when it
// was published. One that has more than an entry of the log may serve goes on with
// Pulses, in the order of the subscriptions' numbers. A subscription that is
// removed before its turn gets nothing; one that is changed gets what it then
// asks for.
type fanOut struct {
	record []byte // Stored
	body   uint64 // number of the record; 0: not stored yet
	size   int    // bytes that the publish counts
	cursor uint64 // the last subscription that is served
	last   uint64 // the last one to serve
	copies int    // copies of the entry at hand
	extra  int    // steps that outlets took beside one for each subscription, not yet counted

	parsed   bool // the fields below are set
	stored   Stored
	dedupID  string
	payloads [2]*Payload // what filter policies of sqs and of other subscriptions look at; nil before the first does
}

// fan serves subscriptions, as long as there are steps left, and reports whether
// all are served.
func (s *State) fan(at *Moment, t *topic, f *fanOut, left *int) (done bool) {
	if t.receivers.count == 0 {
		return true
	}
	f.parse()
	for sub := range t.receivers.from(&subscription{number: f.cursor + 1}) {
		if sub.number > f.last {
			return true
		}
		if *left <= 0 {
			return false
		}
		*left--
		f.cursor = sub.number
		if sub.more == nil || sub.more.filter == nil || t.admits(sub, f, left) {
			s.deliver(at, t, sub, f)
			*left, f.extra = max(0, *left-f.extra), 0
		}
	}
	return true
}

// postpone leaves the rest of a publish to Pulses. Its record is stored, so that
// the copies to come can refer to it.
func (s *State) postpone(at *Moment, t *topic, f *fanOut) {
	f.store(at)
	if len(t.fanOuts) == 0 {
		s.unfinished = append(s.unfinished, t)
	}
	t.fanOuts = append(t.fanOuts, f)
	s.waiting += len(f.record)
}

// goOn goes on with publishes that wait, topic by topic in turn.
func (s *State) goOn(at *Moment, left *int) {
	for *left > 0 && len(s.unfinished) > 0 {
		t := s.unfinished[0]
		s.working = t.key
		s.unfinished[0] = nil
		s.unfinished = s.unfinished[1:]
		for *left > 0 && len(t.fanOuts) > 0 {
			f := t.fanOuts[0]
			if !s.fan(at, t, f, left) {
				break
			}
			s.waiting -= len(f.record)
			t.fanOuts[0] = nil
			t.fanOuts = t.fanOuts[1:]
		}
		if len(t.fanOuts) > 0 {
			s.unfinished = append(s.unfinished, t)
		}
	}
}

// dropFanOuts gives up what waits in a topic.
func (s *State) dropFanOuts(t *topic) {
	if len(t.fanOuts) == 0 {
		return
	}
	for _, f := range t.fanOuts {
		s.waiting -= len(f.record)
	}
	t.fanOuts = nil
	s.unfinished = slices.DeleteFunc(s.unfinished, func(u *topic) bool { return u == t })
}

// parse reads the record. It cannot fail: whoever made the command encoded it; a
// record that is broken all the same is delivered as an empty message.
func (f *fanOut) parse() {
	if f.parsed {
		return
	}
	f.parsed = true
	f.stored, _ = ParseStored(f.record)
	f.dedupID = f.stored.Message.DeduplicationID
}

// store gives the record its number, once.
func (f *fanOut) store(at *Moment) {
	if f.body == 0 {
		f.body = at.Outlet.Store(f.record)
	}
}

// valuesPerStep is how many values of a message a filter policy looks at in the
// time of a step.
const valuesPerStep = 64

// admits asks the filter policy of a subscription, and counts why it refuses. One
// that has to look at many values takes more steps. (What the message's own values
// cost is not counted: they are read again after a restart, which must not change
// how far a command comes.)
func (t *topic) admits(sub *subscription, f *fanOut, left *int) bool {
	p := &f.payloads[0]
	if sub.protocol != SQS {
		p = &f.payloads[1]
	}
	if *p == nil {
		*p = payloadOf(&f.stored.Message, sub.protocol)
	}
	before := (*p).Work()
	outcome := sub.more.filter.Evaluate(*p)
	*left = max(0, *left-((*p).Work()-before)/valuesPerStep)
	if outcome == Matched {
		return true
	}
	c := &t.counters
	c.Filtered++
	switch outcome {
	case FilteredOutMessageAttributes:
		c.FilteredByAttributes++
	case FilteredOutMessageBody:
		c.FilteredByBody++
	case FilteredOutNoMessageAttributes:
		c.FilteredNoAttributes++
	case FilteredOutInvalidAttributes:
		c.FilteredInvalidAttributes++
	case FilteredOutInvalidMessageBody:
		c.FilteredInvalidBody++
	}
	return false
}

// payloadOf is a message as filter policies of subscriptions of a protocol see it.
// Beside sqs only sms can be delivered, so two do.
func payloadOf(m *Message, p Protocol) *Payload {
	list := make([]PayloadAttribute, len(m.Attributes))
	for i := range m.Attributes {
		a := &m.Attributes[i]
		list[i] = PayloadAttribute{Name: a.Name, DataType: a.DataType, Value: string(a.Value)}
	}
	return NewPayload(list, string(m.TextFor(p)))
}

// deliver brings a publish to one subscription: to its queue, or else to its
// dead-letter queue. Both happen in the log entry at hand, so that nothing is left
// to be tried again. What cannot be delivered raw goes to the dead-letter queue in
// its envelope, which keeps all of it.
func (s *State) deliver(at *Moment, t *topic, sub *subscription, f *fanOut) {
	if sub.protocol != SQS {
		s.deliverElsewhere(t, sub)
		return
	}
	queue, _ := parseQueueARN(sub.endpoint)
	c := Copy{Queue: queue, Topic: t.key, Subscription: sub.id, Shape: Enveloped, Size: f.size}
	outcome := Unsuitable
	if !sub.raw || canBeRaw(&f.stored.Message) {
		if sub.raw {
			c.Shape = Raw
		}
		outcome = f.send(at, t, c)
	}
	if outcome == Delivered {
		t.counters.Delivered++
		return
	}
	t.counters.Failed++
	event := Event{Kind: DeliveryFailed, Topic: t.key, Subscription: sub.id, Outcome: outcome}
	if sub.more != nil && sub.more.redrive.Name != "" {
		c.Queue = sub.more.redrive
		if f.send(at, t, c) == Delivered {
			t.counters.Redriven++
			event.Kind = DeliveryRedriven
		} else {
			t.counters.RedriveFailed++
		}
	}
	s.addEvent(event)
}

// canBeRaw reports whether a queue's message can be what this one is: with a text,
// of characters that it may have, and with no more attributes than it may have.
func canBeRaw(m *Message) bool {
	return len(m.TextFor(SQS)) > 0 && !m.Unfit && len(m.Attributes) <= MaxQueueAttributes
}

// send puts one copy into a queue. To a standard queue of a FIFO topic neither id
// is sent (AWS recording test_fifo_topic_to_regular_sqs).
func (f *fanOut) send(at *Moment, t *topic, c Copy) Outcome {
	m := &f.stored.Message
	if IsFIFO(c.Queue.Name) == IsFIFO(t.key.Name) {
		c.GroupID = m.GroupID
	}
	if IsFIFO(c.Queue.Name) {
		c.DeduplicationID = f.dedupID
	}
	f.store(at)
	c.Body = f.body
	outcome, steps := at.Outlet.Deliver(&c)
	f.extra += steps
	if outcome == Delivered {
		f.copies++
	}
	return outcome
}

// deliverElsewhere is deliver for what is no queue. Text messages have no sink but
// the log. What else may be confirmed one day cannot be yet.
func (s *State) deliverElsewhere(t *topic, sub *subscription) {
	if sub.protocol == SMS {
		t.counters.Texts++
		s.addEvent(Event{Kind: TextLogged, Topic: t.key, Subscription: sub.id, Outcome: Delivered})
		return
	}
	t.counters.Failed++
	s.addEvent(Event{Kind: DeliveryFailed, Topic: t.key, Subscription: sub.id, Outcome: Unsuitable})
}

// maxEvents is how many events one command has at most; they are for warnings,
// which are counted elsewhere.
const maxEvents = 16

func (s *State) addEvent(e Event) {
	if len(s.events) < maxEvents {
		s.events = append(s.events, e)
	}
}
