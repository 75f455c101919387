package sqs

// replacePolicy answers with the present policy when it is not the one that the
// new one was made of; the caller makes another then.
func (s *State) replacePolicy(at Moment, c ReplacePolicy) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	if q.settings.policy != c.Old {
		return ReplacePolicyResult{Policy: q.settings.policy}, nil, nil
	}
	q.settings.policy, q.modifiedAt = c.New, at.Now
	return ReplacePolicyResult{Replaced: true, Policy: c.New}, nil, nil
}
