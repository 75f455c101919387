package sns

func (s *State) publishBatch(at *Moment, c PublishBatch) (Result, *Error) {
	t, err := s.sound(c.Topic)
	if err != nil {
		return nil, err
	}
	if err := s.checkPublish(t, &c); err != nil {
		return nil, err
	}
	r := PublishBatchResult{Entries: make([]PublishResult, len(c.Entries))}
	left := s.left
	if len(s.unfinished) > 0 {
		left = max(0, left-s.steps/2) // so much is for a Pulse, which may be in the same entry
	}
	if t.receivers.count > s.steps {
		left = min(left, PulseSteps)
	}
	kept := s.left - left
	for i := range c.Entries {
		r.Entries[i] = s.publish(at, t, &c.Entries[i], &left)
	}
	s.left = left + kept
	if t.dedup.count > 0 {
		s.due(t, at.Now.WindowEnd(at.Rules.DedupWindow))
	}
	return r, nil
}

// checkPublish checks what fails a publish as a whole, in the order of AWS (AWS
// recordings test_publish_too_long_message, test_validations_for_fifo).
func (s *State) checkPublish(t *topic, c *PublishBatch) *Error {
	size := 0
	for i := range c.Entries {
		size += c.Entries[i].Size
	}
	switch {
	case size > int(t.settings.maxSize) && c.Single:
		return Invalid("Message too long")
	case size > int(t.settings.maxSize):
		return &Error{Code: BatchRequestTooLong, Message: "The length of all the messages put together is more than the limit."}
	}
	for i := range c.Entries {
		if err := CheckIDs(t.key, t.settings.contentBased, c.Entries[i].GroupID, c.Entries[i].DeduplicationID); err != nil {
			return err
		}
	}
	if len(t.fanOuts)+len(c.Entries) > maxUnfinished || s.waiting+size > maxUnfinishedBytes {
		return throttled()
	}
	return nil
}

// CheckIDs checks the ids of a message, empty if there is none, against the type of
// the topic and its ContentBasedDeduplication (AWS recordings
// test_validations_for_fifo, test_publish_batch_exceptions).
func CheckIDs(topic TopicKey, contentBased bool, groupID, deduplicationID string) *Error {
	fifo := IsFIFO(topic.Name)
	switch {
	case fifo && groupID == "":
		return Invalid("The MessageGroupId parameter is required for FIFO topics")
	case fifo && deduplicationID == "" && !contentBased:
		return Invalid("The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	case !fifo && deduplicationID != "":
		return Invalid("MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type")
	}
	return nil
}

// publish accepts one message, unless one was published with the same
// deduplication id within the window: then that one is the result (AWS recording
// test_publish_to_fifo_topic_deduplication_on_topic_level).
func (s *State) publish(at *Moment, t *topic, e *PublishEntry, left *int) PublishResult {
	stored := Stored{At: at.Now, SignatureVersion: t.settings.version}
	if IsFIFO(t.key.Name) {
		key, window := newDedupKey(e, t.settings.byGroup), at.Rules.DedupWindow
		t.dedup.forget(at.Now, window, forgottenByPublish)
		if known, ok := t.dedup.find(key, at.Now, window); ok {
			t.counters.Deduplicated++
			return PublishResult{MessageID: known.id, SequenceNumber: known.sequence}
		}
		t.lastSequence++
		stored.SequenceNumber, stored.SignatureVersion = t.lastSequence, 0
		if window > 0 {
			t.dedup.add(original{key: key, id: e.MessageID, at: at.Now, sequence: t.lastSequence})
		}
	}
	t.counters.Published++
	t.counters.PublishBytes += uint64(e.Size)
	f := &fanOut{record: appendStored(nil, &stored, e.Content), size: e.Size, last: t.lastNumber}
	r := PublishResult{MessageID: e.MessageID, SequenceNumber: stored.SequenceNumber}
	if len(t.fanOuts) > 0 || !s.fan(at, t, f, left) {
		s.postpone(at, t, f)
	}
	r.Body, r.Copies = f.body, f.copies
	return r
}
