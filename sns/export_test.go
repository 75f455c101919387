package sns

// Matches reports whether the message is for the subscription with this policy.
func (p *FilterPolicy) Matches(m *Payload) bool { return p.Evaluate(m) == Matched }

// Remains counts what deleted topics have left behind: holdings and subscriptions.
// tokens are those that are known, of all topics.
func (s *State) Remains() (left, tokens int) {
	for _, t := range s.deleted {
		left += len(t.holdings) + t.directory.count
	}
	return left, len(s.tokens)
}

// Texts is how many texts are kept for subscriptions to share.
func (s *State) Texts() int { return len(s.texts) }

// SetSteps makes entries do so little that cursors are needed for few
// subscriptions.
func (s *State) SetSteps(n int) { s.steps, s.left = n, n }
