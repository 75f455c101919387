package sns

// Matches reports whether the message is for the subscription with this policy.
func (p *FilterPolicy) Matches(m *Payload) bool { return p.Evaluate(m) == Matched }

// SetSteps makes entries do so little that cursors are needed for few
// subscriptions.
func (s *State) SetSteps(n int) { s.steps, s.left = n, n }
