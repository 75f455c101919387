package sns

import "strconv"

// FilterError says why a filter policy is refused, in the words of AWS (AWS
// recording test_sns_filter_policy).
type FilterError struct {
	Detail       string // what is wrong
	Line, Column int    // where; 0 if AWS does not say
	Syntax       bool   // it is not JSON
	Bare         bool   // AWS does not name the attribute before it
	twice        bool   // AWS says the place twice
}

// Error returns the message of SetSubscriptionAttributes, without the words
// "Invalid parameter: " before it.
func (e *FilterError) Error() string {
	text := e.Detail
	if e.Syntax {
		text = "failed to parse JSON. " + text
	}
	if !e.Bare {
		text = "FilterPolicy: " + text
	}
	if e.Column == 0 {
		return text
	}
	place := "\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: " +
		strconv.Itoa(e.Line) + ", column: " + strconv.Itoa(e.Column) + "]"
	if e.twice {
		place += place
	}
	return text + place
}

// InSubscribe returns the message of Subscribe, without the words "Invalid
// parameter: " before it.
func (e *FilterError) InSubscribe() string {
	if e.Bare {
		return e.Error()
	}
	return "Attributes Reason: " + e.Error()
}
