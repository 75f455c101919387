package sns

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"
)

// FirstSequenceNumber is what is shown for the sequence number 0 of a topic.
const FirstSequenceNumber = 10_000_000_000_000_000_000

// SequenceText is a sequence number as AWS shows it: 20 digits.
func SequenceText(n uint64) string { return strconv.FormatUint(FirstSequenceNumber+n, 10) }

// Envelope is what is shown of a publish, beside the publish itself, to one
// subscription that does not get it raw.
type Envelope struct {
	Protocol       Protocol // whose text it is
	SubscriptionID SubscriptionID
	URL            string // that URLs begin with, without a slash at the end
	SigningCertURL string
	Signature      []byte // not of a FIFO topic, whose messages have none
}

// appendTimestamp appends a time as it stands in envelopes: UTC, with three
// decimals.
func appendTimestamp(dst []byte, t Time) []byte {
	return time.UnixMilli(int64(t)).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}

// AppendEnvelope appends the JSON document that a subscription gets, in the very
// form of AWS: two spaces, a space on both sides of the colon, and keys in this
// order (SNS developer guide, "Parsing Amazon SNS message formats"; AWS recording
// test_publish_sqs_from_sns).
func AppendEnvelope(dst []byte, s *Stored, e *Envelope) []byte {
	m := &s.Message
	dst = append(dst, "{\n  \"Type\" : \"Notification\",\n  \"MessageId\" : \""...)
	dst = append(appendUUID(dst, m.ID), '"')
	if s.SequenceNumber != 0 {
		dst = appendMember(dst, "SequenceNumber", SequenceText(s.SequenceNumber))
	}
	dst = appendMember(dst, "TopicArn", m.TopicARN)
	if m.Subject != "" {
		dst = appendMember(dst, "Subject", m.Subject)
	}
	dst = appendMember(dst, "Message", m.TextFor(e.Protocol))
	dst = appendMember(dst, "Timestamp", appendTimestamp(nil, s.At))
	if s.SignatureVersion != 0 && len(e.Signature) > 0 {
		dst = appendMember(dst, "SignatureVersion", strconv.Itoa(int(s.SignatureVersion)))
		dst = append(dst, ",\n  \"Signature\" : \""...)
		dst = append(base64.StdEncoding.AppendEncode(dst, e.Signature), '"')
		dst = appendMember(dst, "SigningCertURL", e.SigningCertURL)
	}
	dst = appendMember(dst, "UnsubscribeURL", unsubscribeURL(m.TopicARN, e))
	if len(m.Attributes) > 0 {
		dst = appendMessageAttributes(dst, m.Attributes)
	}
	return append(dst, "\n}"...)
}

func unsubscribeURL(topicARN string, e *Envelope) []byte {
	dst := append([]byte(e.URL), "/?Action=Unsubscribe&SubscriptionArn="...)
	return AppendSubscriptionARN(dst, topicARN, e.SubscriptionID)
}

func appendMessageAttributes(dst []byte, list []MessageAttribute) []byte {
	dst = append(dst, ",\n  \"MessageAttributes\" : {"...)
	for i := range list {
		a := &list[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, "\n    "...)
		dst = appendJSON(dst, a.Name)
		dst = append(dst, " : {\"Type\":"...)
		dst = appendJSON(dst, a.DataType)
		dst = append(dst, ",\"Value\":"...)
		if a.Binary {
			dst = append(dst, '"')
			dst = append(base64.StdEncoding.AppendEncode(dst, a.Value), '"')
		} else {
			dst = appendJSON(dst, a.Value)
		}
		dst = append(dst, '}')
	}
	return append(dst, "\n  }"...)
}

func appendMember[T string | []byte](dst []byte, name string, value T) []byte {
	dst = append(append(append(dst, ",\n  \""...), name...), "\" : "...)
	return appendJSON(dst, value)
}

// appendJSON appends a JSON string. It escapes what JSON needs to be escaped and what
// a message of a queue may not have, and nothing else; what is no UTF-8, which no
// request may contain, is replaced.
func appendJSON[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c, size := text[i], 1
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		var r rune
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			if size > 1 && r != 0xFFFE && r != 0xFFFF {
				i += size
				continue
			}
		}
		dst = append(dst, text[from:i]...)
		if size > 1 {
			dst = append(dst, '\\', 'u', 'f', 'f', 'f', hexDigits[r&15])
		} else {
			dst = appendEscape(dst, c)
		}
		i += size
		from = i
	}
	return append(append(dst, text[from:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if c >= utf8.RuneSelf {
		return append(dst, "\uFFFD"...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendStringToSign appends what the signature of a notification is made over:
// names and values, each with a line feed, in the order of the names' bytes (SNS
// developer guide, "Verifying the signatures of Amazon SNS messages").
func AppendStringToSign(dst []byte, s *Stored, p Protocol) []byte {
	m := &s.Message
	dst = append(append(append(dst, "Message\n"...), m.TextFor(p)...), "\nMessageId\n"...)
	dst = append(appendUUID(dst, m.ID), '\n')
	if m.Subject != "" {
		dst = append(append(append(dst, "Subject\n"...), m.Subject...), '\n')
	}
	dst = appendTimestamp(append(dst, "Timestamp\n"...), s.At)
	dst = append(append(dst, "\nTopicArn\n"...), m.TopicARN...)
	return append(dst, "\nType\nNotification\n"...)
}
