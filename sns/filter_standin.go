package sns

// This file goes when the filter engine comes.

// FilterScope says what a filter policy looks at.
type FilterScope byte

// The scopes.
const (
	MessageAttributesScope FilterScope = iota
	MessageBodyScope
)

// FilterOutcome says whether a subscription gets a message.
type FilterOutcome byte

// The outcomes.
const (
	Matched FilterOutcome = iota
	FilteredOutMessageAttributes
	FilteredOutMessageBody
	FilteredOutNoMessageAttributes
	FilteredOutInvalidAttributes
	FilteredOutInvalidMessageBody
)

// FilterPolicy stands in.
type FilterPolicy struct{}

// PayloadAttribute stands in.
type PayloadAttribute struct{ Name, DataType, Value string }

// Payload stands in.
type Payload struct{}

// FilterError stands in.
type FilterError struct{ Bare bool }

func (*FilterError) Error() string { return "" }

// NewPayload stands in.
func NewPayload([]PayloadAttribute, string) *Payload { return &Payload{} }

// ParseFilterPolicy stands in.
func ParseFilterPolicy(string, FilterScope) (*FilterPolicy, error) { return &FilterPolicy{}, nil }

// EmptyFilterPolicy stands in.
func EmptyFilterPolicy(text string) bool { return text == "" || text == "{}" }

// Evaluate stands in.
func (*FilterPolicy) Evaluate(*Payload) FilterOutcome { return Matched }
