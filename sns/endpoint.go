package sns

import "strings"

// ValidateEndpoint checks where a subscription of a topic is to be delivered. What
// Holdfast cannot deliver to is refused here: nothing is accepted and then
// dropped. A queue need not exist.
func ValidateEndpoint(topic TopicKey, p Protocol, endpoint string) *Error {
	if IsFIFO(topic.Name) && p != SQS {
		return Invalid("Invalid protocol type: " + p.String())
	}
	switch p {
	case HTTP, HTTPS:
		if !strings.HasPrefix(endpoint, p.String()+"://") {
			return Invalid("Endpoint must match the specified protocol")
		}
		if len(endpoint) > maxURL || !validURL(endpoint[len(p.String()+"://"):]) {
			return Invalid("Unreachable Endpoint")
		}
	case Email, EmailJSON:
		if !validEmail(endpoint) {
			return Invalid("Email address")
		}
	case SQS:
		return validateQueue(topic, endpoint)
	case SMS:
		if _, ok := PhoneNumber(endpoint); !ok {
			return &Error{Code: InvalidParameter, Message: "Invalid SMS endpoint: " + endpoint}
		}
	case Application:
		return validateApplication(endpoint)
	case Lambda, Firehose:
		return invalidf("Endpoint Reason: deliveries to %s are not supported by Holdfast", p)
	default:
		return UnknownProtocol("")
	}
	return nil
}

// UnknownProtocol refuses the name of a protocol.
func UnknownProtocol(name string) *Error {
	return Invalid("Amazon SNS does not support this protocol string: " + name)
}

// validateQueue refuses what is not a queue's ARN, and a FIFO queue for a standard
// topic; AWS says "Invalid parameter" twice then (AWS recording
// test_validations_for_fifo).
func validateQueue(topic TopicKey, endpoint string) *Error {
	queue, ok := queueOf(endpoint)
	if !ok {
		return Invalid("SQS endpoint ARN")
	}
	if IsFIFO(queue.Name) && !IsFIFO(topic.Name) {
		return Invalid("Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics")
	}
	return nil
}

// validURL checks what comes after the scheme: a host without the characters that
// no host has.
func validURL(rest string) bool {
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	bad := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune(".-:[]", r) }
	return host != "" && host[0] != ':' && !strings.ContainsFunc(host, bad)
}

// MaskedEndpoint is an endpoint as it is shown: without the password that a URL may
// have (SNS developer guide, "Fanout to HTTP/S endpoints").
func MaskedEndpoint(p Protocol, endpoint string) string {
	from, to, ok := password(p, endpoint)
	if !ok {
		return endpoint
	}
	return endpoint[:from] + "****" + endpoint[to:]
}

// password finds the password in an endpoint: endpoint[from:to].
func password(p Protocol, endpoint string) (from, to int, ok bool) {
	begin := strings.Index(endpoint, "://") + len("://")
	if p != HTTP && p != HTTPS || begin < len("://") {
		return 0, 0, false
	}
	authority := endpoint[begin:]
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return 0, 0, false
	}
	colon := strings.IndexByte(authority[:at], ':')
	return begin + colon + 1, begin + at, colon >= 0
}

func validEmail(address string) bool {
	name, host, ok := strings.Cut(address, "@")
	return ok && name != "" && len(address) <= 256 && strings.Contains(host, ".") && !strings.ContainsAny(host, "@ ") &&
		host[0] != '.' && host[len(host)-1] != '.' && !strings.ContainsAny(name, " \t\r\n")
}

func validateApplication(endpoint string) *Error {
	a, ok := ParseARN(endpoint)
	if !ok || a.Service != "sns" || !strings.HasPrefix(a.Resource, "endpoint/") {
		return Invalid("Application endpoint arn invalid:" + endpoint)
	}
	return Invalid("Endpoint Reason: Endpoint does not exist for endpoint arn" + endpoint)
}

// PhoneNumber takes the single separators out of a phone number, and checks it
// (AWS recordings test_subscribe_sms_endpoint, test_subscribe_invalid_sms).
func PhoneNumber(text string) (number string, ok bool) {
	digits := make([]byte, 0, len(text))
	separated := true // a separator may not come first, nor twice
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			digits, separated = append(digits, c), false
		case c == '+' && i == 0:
			digits = append(digits, c)
		case strings.IndexByte("./-", c) >= 0 && !separated:
			separated = true
		default:
			return "", false
		}
	}
	number = string(digits)
	bare := strings.TrimPrefix(number, "+")
	return number, !separated && len(bare) >= 2 && len(bare) <= 15 && bare[0] != '0'
}
