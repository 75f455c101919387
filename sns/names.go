package sns

import "strings"

// IsFIFO reports whether a topic or a queue of that name is a FIFO one.
func IsFIFO(name string) bool { return strings.HasSuffix(name, FIFOSuffix) }

// ValidateTopicName checks the name of a topic to be made; fifo is what the
// attribute FifoTopic says (AWS recording test_create_topic_name_constraints).
func ValidateTopicName(name string, fifo bool) *Error {
	bare, suffixed := strings.CutSuffix(name, FIFOSuffix)
	if len(name) > MaxTopicName || bare == "" || suffixed != fifo || strings.ContainsFunc(bare, notNameRune) {
		return Invalid("Topic Name")
	}
	return nil
}

func notNameRune(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '_' }

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// ValidateID checks a MessageGroupId or MessageDeduplicationId: 1 to 128 letters,
// digits and punctuation marks of ASCII.
func ValidateID(parameter, id string) *Error {
	outside := func(r rune) bool { return r <= ' ' || r > '~' }
	if id == "" || len(id) > MaxIDLength || strings.ContainsFunc(id, outside) {
		return invalidf("%s Reason: The %s can include 1 to 128 alphanumeric or punctuation characters", parameter, parameter)
	}
	return nil
}

// ARN is an Amazon resource name in its parts.
type ARN struct{ Partition, Service, Region, Account, Resource string }

// ParseARN cuts a text into the parts of an ARN. Colons behind the fifth belong to
// the resource.
func ParseARN(text string) (ARN, bool) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return ARN{}, false
	}
	return ARN{Partition: parts[1], Service: parts[2], Region: parts[3], Account: parts[4], Resource: parts[5]}, true
}

// parseQueueARN reads the ARN of a queue, wherever that is. It allocates nothing:
// every copy of a publish asks it.
func parseQueueARN(text string) (q QueueARN, ok bool) {
	rest, isARN := strings.CutPrefix(text, "arn:")
	_, rest, _ = strings.Cut(rest, ":") // the partition
	rest, isSQS := strings.CutPrefix(rest, "sqs:")
	q.Region, rest, _ = strings.Cut(rest, ":")
	q.Account, q.Name, ok = strings.Cut(rest, ":")
	if !isARN || !isSQS || !ok || q.Region == "" || len(q.Account) != 12 || q.Name == "" || strings.Contains(q.Name, ":") {
		return QueueARN{}, false
	}
	return q, true
}

// queueOf reads the ARN of a queue that a client names. No queue's is longer than
// maxQueueARN.
func queueOf(text string) (QueueARN, bool) {
	q, ok := parseQueueARN(text)
	return q, ok && len(q.Name) <= maxQueueName && len(text) <= maxQueueARN
}

// TopicARN is the ARN of a topic.
func TopicARN(region string, topic TopicKey) string {
	return "arn:aws:sns:" + region + ":" + topic.Account + ":" + topic.Name
}

// AppendSubscriptionARN appends the ARN of a subscription.
func AppendSubscriptionARN(dst []byte, topicARN string, id SubscriptionID) []byte {
	dst = append(append(dst, topicARN...), ':')
	return appendUUID(dst, id)
}

// String is the UUID in text, the last part of the subscription's ARN.
func (id SubscriptionID) String() string { return string(appendUUID(nil, id)) }

const hexDigits = "0123456789abcdef"

func appendUUID(dst []byte, id [16]byte) []byte {
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}

// ParseSubscriptionID reads the last part of a subscription's ARN.
func ParseSubscriptionID(text string) (id SubscriptionID, ok bool) {
	if len(text) != 36 {
		return id, false
	}
	n := 0
	for i := 0; i < len(text); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if text[i] != '-' {
				return SubscriptionID{}, false
			}
			continue
		}
		digit := strings.IndexByte(hexDigits, text[i])
		if digit < 0 {
			return SubscriptionID{}, false
		}
		id[n/2] = id[n/2]<<4 | byte(digit)
		n++
	}
	return id, true
}
