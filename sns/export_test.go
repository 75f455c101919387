package sns

// SetSteps makes entries do so little that cursors are needed for few
// subscriptions.
func (s *State) SetSteps(n int) { s.steps, s.left = n, n }
