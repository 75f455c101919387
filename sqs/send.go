package sqs

func (s *State) sendMessageBatch(at Moment, c SendMessageBatch) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
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
		q.send(at.Now, e, body)
		sent.Entries[i] = SendResult{Body: body, MessageID: e.MessageID}
		body++
	}
	if body == at.NextBody {
		return sent, nil, nil
	}
	s.expect(q, at.Now)
	return sent, []Event{{Kind: MessagesAvailable, Queue: q.key}}, nil
}

// send adds a message. A delay is counted from now, and is not changed by what
// DelaySeconds becomes later.
func (q *queue) send(now Time, e *SendEntry, body uint64) {
	q.lastSequence++
	q.counters.Sent++
	q.counters.SentBytes += uint64(e.Size)
	window := Time(0).WindowEnd(timeout(e.Delay, q.settings.delay))
	q.messages.send(run{sequence: q.lastSequence, body: body, sentAt: now, count: 1}, window, e.GroupID)
}
