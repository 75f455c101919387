package sqs

func (s *State) sendMessageBatch(at Moment, c SendMessageBatch) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	if err := q.checkFIFO(&c); err != nil {
		return nil, nil, err
	}
	sent := SendMessageBatchResult{Entries: make([]SendResult, len(c.Entries))}
	body := at.NextBody
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Size > int(q.settings.maxSize) {
			sent.Entries[i] = SendResult{Err: EntryTooLong(int(q.settings.maxSize))}
			continue
		}
		if sent.Entries[i] = q.send(at, e, body); sent.Entries[i].Body != 0 {
			body++
		}
	}
	if body == at.NextBody {
		return sent, nil, nil
	}
	s.expectSent(at, q)
	return sent, []Event{{Kind: MessagesAvailable, Queue: q.key}}, nil
}

// expectSent notes when what was just sent is to be dropped.
func (s *State) expectSent(at Moment, q *queue) {
	s.expect(q, at.Now)
	if q.fifo == nil {
		s.expectDelays(q)
	} else if at.Rules.DedupWindow > 0 {
		s.due(q, at.Now.WindowEnd(at.Rules.DedupWindow))
	}
}

// send adds a message. A delay is counted from now, and is not changed by what
// DelaySeconds becomes later.
func (q *queue) send(at Moment, e *SendEntry, body uint64) SendResult {
	if q.fifo != nil {
		return q.sendFIFO(at, e, body, origin{})
	}
	q.sendStandard(at, e, body, origin{})
	return SendResult{Body: body, MessageID: e.MessageID}
}

func (q *queue) sendStandard(at Moment, e *SendEntry, body uint64, from origin) {
	q.lastSequence++
	q.counters.Sent++
	q.counters.SentBytes += uint64(e.Size)
	window := Time(0).WindowEnd(timeout(e.Delay, q.settings.delay))
	q.messages.send(run{sequence: q.lastSequence, body: body, sentAt: at.Now, count: 1}, window, e.GroupID, from)
}

// checkFIFO checks what fails a send to a FIFO queue as a whole (AWS recordings
// test_posting_to_fifo_requires_deduplicationid_group_id,
// test_send_batch_missing_deduplication_id_for_fifo_queue).
func (q *queue) checkFIFO(c *SendMessageBatch) *Error {
	if q.fifo == nil {
		return nil
	}
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.GroupID == "" {
			return Invalidf("The request must contain the parameter MessageGroupId.")
		}
		if e.DeduplicationID == "" && !q.settings.contentBased {
			return NeedsDeduplicationID()
		}
	}
	return nil
}

// sendFIFO adds a message, unless one was sent with the same deduplication id
// within the window: then that one is the result. The window is counted from the
// send that was accepted, and goes on after the message is deleted (AWS recordings
// test_deduplication_interval, test_fifo_deduplication_arrives_once_after_delete).
func (q *queue) sendFIFO(at Moment, e *SendEntry, body uint64, from origin) SendResult {
	f, window := q.fifo, at.Rules.DedupWindow
	f.dedup.forget(at.Now, window, forgottenBySend)
	key := newDedupKey(e, q.settings.scopedByGroup)
	if known, ok := f.dedup.find(key, at.Now, window); ok {
		q.counters.Deduplicated++
		return SendResult{MessageID: known.id, SequenceNumber: known.sequence}
	}
	q.lastSequence++
	q.counters.Sent++
	q.counters.SentBytes += uint64(e.Size)
	if window > 0 {
		f.dedup.add(key, original{at: at.Now, id: e.MessageID, sequence: q.lastSequence})
	}
	f.add(record{sequence: q.lastSequence, body: body, sentAt: at.Now, origin: f.origins.use(from)}, e.GroupID)
	return SendResult{Body: body, MessageID: e.MessageID, SequenceNumber: q.lastSequence}
}
