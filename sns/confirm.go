package sns

// confirmation is what a token is good for.
type confirmation struct {
	topic        TopicKey
	subscription SubscriptionID
	until        Time
}

// confirmSubscription goes by the token alone: the topic of the request may be
// another one (AWS recording test_sns_confirm_subscription_wrong_token). To confirm
// again is no error, unless it was made a matter of authentication before.
func (s *State) confirmSubscription(c ConfirmSubscription) (Result, *Error) {
	known, ok := s.tokens[c.Token]
	if !ok || known.until <= s.now {
		return nil, Invalid("Token")
	}
	t, sub, err := s.found(known.topic, known.subscription)
	switch {
	case err != nil && err.Code == NotFound: // its topic was deleted
		return nil, Invalid("Token")
	case err != nil:
		return nil, err
	}
	result := ConfirmSubscriptionResult{Topic: known.topic, Subscription: sub.id}
	authenticated := c.Signed && c.AuthenticateOnUnsubscribe
	switch {
	case sub.pending():
		confirmed := *sub
		t.lastNumber++
		confirmed.number = t.lastNumber
		confirmed.authenticated = authenticated
		s.replace(t, sub, &confirmed)
	case sub.authenticated && !c.Signed:
		return nil, &Error{Code: AuthorizationError, Message: "Subscription already confirmed"}
	case authenticated && !sub.authenticated:
		changed := *sub
		changed.authenticated = true
		s.replace(t, sub, &changed)
	}
	return result, nil
}

// forgetTokens makes the tokens of a subscription useless.
func (s *State) forgetTokens(sub *subscription) {
	if sub.more == nil {
		return
	}
	for _, t := range sub.more.tokens {
		if s.tokens[t.hash].subscription == sub.id {
			delete(s.tokens, t.hash)
		}
	}
}
