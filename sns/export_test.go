package sns

// SetSteps makes commands do so little that cursors are needed for few
// subscriptions.
func (s *State) SetSteps(n int) { s.steps = n }
