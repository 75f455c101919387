package sns

// How much of what deleted topics have left behind is forgotten at a time; a
// subscription and a holding count one each.
const (
	sweptByCommand = 16 // so DeleteTopic leaves nothing of a small topic
	sweptByPulse   = MaxSteps
)

// leave takes note of a topic that was deleted. Its subscriptions go with it, but
// for what is in lists that all topics share: the holdings of their owners, and
// their tokens. A topic may have more of those than a command should go through, so
// the next commands and Pulses forget them (sweep). Nobody can tell when: lists pass
// over holdings of a deleted topic, and a token of one confirms nothing.
func (s *State) leave(t *topic) {
	t.deleted = true
	t.ids, t.receivers, t.unconfirmed = nil, sorted[*subscription]{}, sorted[*subscription]{}
	t.dedup = dedup{}
	s.deleted = append(s.deleted, t)
	s.sweep(sweptByCommand)
}

// sweep forgets up to so many things of deleted topics, of the oldest first. It
// takes none of the steps of the log entry: a State that was thawed has nothing to
// sweep, and must come as far with its publishes.
func (s *State) sweep(left int) {
	for left > 0 && len(s.deleted) > 0 {
		t := s.deleted[0]
		left -= s.sweepHoldings(t, left)
		left -= s.sweepTokens(t, left)
		if len(t.holdings) > 0 || t.directory.count > 0 {
			return
		}
		s.deleted[0] = nil
		s.deleted = s.deleted[1:]
	}
}

// sweepHoldings forgets holdings of a deleted topic, and returns how many.
func (s *State) sweepHoldings(t *topic, most int) int {
	n := min(most, len(t.holdings))
	rest := len(t.holdings) - n
	for _, h := range t.holdings[rest:] {
		s.dropHolding(h)
	}
	t.holdings = t.holdings[:rest]
	return n
}

// sweepTokens forgets the tokens of subscriptions of a deleted topic, and returns of
// how many. The pages of the list are not changed: a Frozen may refer to them.
func (s *State) sweepTokens(t *topic, most int) (swept int) {
	list := &t.directory
	for swept < most && list.count > 0 {
		page := list.pages[0]
		n := min(most-swept, len(page))
		for _, sub := range page[:n] {
			s.forgetTokens(sub)
		}
		swept += n
		list.count -= n
		if list.pages[0] = page[n:]; n == len(page) {
			list.pages = list.pages[1:]
		}
	}
	return swept
}
