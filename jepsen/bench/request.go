package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// call is one kind of request; its letter tells the echo server which answer to
// give.
type call int

// firstCall is the letter of the first call; the others follow.
const firstCall = 'a'

const (
	callCreateQueue call = iota
	callDeleteQueue
	callSend
	callSendBatch
	callReceive
	callReceiveBatch
	callDelete
	callDeleteBatch
	callPurgeQueue
	callExpire
	callPublish
	calls // their number
)

// actions are the names of the calls at AWS.
var actions = [calls]string{
	"CreateQueue", "DeleteQueue", "SendMessage", "SendMessageBatch",
	"ReceiveMessage", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch",
	"PurgeQueue", "SetQueueAttributes",
	"Publish",
}

const (
	stampSize = 16 // hex digits
	groupSize = 6  // decimal digits
	maxGroups = 1_000_000
)

// userAgent begins the header that tells the echo server the call.
const userAgent = "holdfast-bench/"

// authorization is what an SDK would send: as long as a signature, and none.
const authorization = "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/sqs/aws4_request, " +
	"SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-target, " +
	"Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// request is one HTTP request that is written as it stands, again and again. Its
// stamps and groups may be set in place.
type request struct {
	bytes  []byte
	body   int   // where the body begins
	length int   // where the digits of Content-Length begin
	stamps []int // where stampSize hex digits stand
	groups []int // where groupSize digits stand
}

// lengthSize is how many digits a Content-Length has; zeros lead.
const lengthSize = 8

// newRequest returns a request without body.
func newRequest(host, protocol string, c call) *request {
	var b strings.Builder
	fmt.Fprintf(&b, "POST / HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s%c\r\n", host, userAgent, firstCall+c)
	if protocol == JSON {
		fmt.Fprintf(&b, "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.%s\r\n", actions[c])
	} else {
		b.WriteString("Content-Type: application/x-www-form-urlencoded\r\n")
	}
	fmt.Fprintf(&b, "X-Amz-Date: 20260101T000000Z\r\nAuthorization: %s\r\nContent-Length: ", authorization)
	r := &request{length: b.Len()}
	b.WriteString(strings.Repeat("0", lengthSize) + "\r\n\r\n")
	r.bytes = []byte(b.String())
	r.body = len(r.bytes)
	return r
}

// reset takes the body away.
func (r *request) reset() {
	r.bytes = r.bytes[:r.body]
	r.stamps, r.groups = r.stamps[:0], r.groups[:0]
}

func (r *request) text(s string) *request {
	r.bytes = append(r.bytes, s...)
	return r
}

// value adds a value that came from the broker, escaped for the protocol.
func (r *request) value(protocol string, v []byte) *request {
	if protocol == JSON { // a handle has no character that JSON escapes
		r.bytes = append(r.bytes, v...)
		return r
	}
	const hex = "0123456789ABCDEF"
	for _, c := range v {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' {
			r.bytes = append(r.bytes, c)
		} else {
			r.bytes = append(r.bytes, '%', hex[c>>4], hex[c&15])
		}
	}
	return r
}

func (r *request) stamp() *request {
	r.stamps = append(r.stamps, len(r.bytes))
	return r.text("0000000000000000")
}

func (r *request) group() *request {
	r.groups = append(r.groups, len(r.bytes))
	return r.text("000000")
}

// message adds a message body of size bytes that begins with a stamp.
func (r *request) message(size int) *request {
	return r.stamp().text(strings.Repeat("x", size-stampSize))
}

// finish sets Content-Length and returns the bytes to send.
func (r *request) finish() []byte {
	n := len(r.bytes) - r.body
	for i := r.length + lengthSize - 1; i >= r.length; i-- {
		r.bytes[i] = byte('0' + n%10)
		n /= 10
	}
	return r.bytes
}

// setStamp writes n into the first stamp, and numbers that go on from it into
// the others.
func (r *request) setStamp(n uint64) {
	const hex = "0123456789abcdef"
	for k, at := range r.stamps {
		v := n + uint64(k)
		for i := at + stampSize - 1; i >= at; i-- {
			r.bytes[i] = hex[v&15]
			v >>= 4
		}
	}
}

// setGroups gives the messages neighbouring groups of count, from first on.
func (r *request) setGroups(first, count int) {
	for n, at := range r.groups {
		g := (first + n) % count
		for i := at + groupSize - 1; i >= at; i-- {
			r.bytes[i] = byte('0' + g%10)
			g /= 10
		}
	}
}

// shape is what the bodies of requests depend on.
type shape struct {
	protocol string
	queueURL string
	topic    string // ARN, of a publish
	body     int    // bytes of a message
	batch    int    // messages of a batch
	fifo     bool
	wait     int // seconds of a receive
	hide     int // seconds for which a receive hides; 0: as the queue says
}

// expireAfter is the shortest retention of a queue at AWS, in seconds.
const expireAfter = "60"

// fill writes the body of a send or receive into r.
func (s shape) fill(r *request, c call) []byte {
	r.reset()
	if c == callPublish {
		return r.text("Action=Publish" + snsVersion + "&TopicArn=" + s.topic + "&Message=").message(s.body).finish()
	}
	if s.protocol == JSON {
		s.fillJSON(r, c)
	} else {
		s.fillQuery(r, c)
	}
	return r.finish()
}

func (s shape) fillJSON(r *request, c call) {
	r.text(`{"QueueUrl":"` + s.queueURL + `"`)
	switch c {
	case callSend:
		r.text(`,"MessageBody":"`).message(s.body).text(`"`)
		if s.fifo {
			r.text(`,"MessageGroupId":"`).group().text(`","MessageDeduplicationId":"`).stamp().text(`"`)
		}
	case callSendBatch:
		r.text(`,"Entries":[`)
		for i := range s.batch {
			n := strconv.Itoa(i)
			r.text(`{"Id":"` + n + `","MessageBody":"`).message(s.body)
			if s.fifo {
				r.text(`","MessageGroupId":"`).group().text(`","MessageDeduplicationId":"`).stamp().text(n)
			}
			r.text(`"},`)
		}
		r.bytes[len(r.bytes)-1] = ']' // over the last comma
	case callReceive, callReceiveBatch:
		r.text(fmt.Sprintf(`,"MaxNumberOfMessages":%d,"WaitTimeSeconds":%d`, maxMessages(c), s.wait))
		if s.hide > 0 {
			r.text(fmt.Sprintf(`,"VisibilityTimeout":%d`, s.hide))
		}
	case callExpire:
		r.text(`,"Attributes":{"MessageRetentionPeriod":"` + expireAfter + `"}`)
	}
	r.text("}")
}

func (s shape) fillQuery(r *request, c call) {
	r.text("Action=" + actions[c] + "&Version=2012-11-05&QueueUrl=").text(s.queueURL)
	switch c {
	case callSend:
		r.text("&MessageBody=").message(s.body)
		if s.fifo {
			r.text("&MessageGroupId=").group().text("&MessageDeduplicationId=").stamp()
		}
	case callSendBatch:
		for i := range s.batch {
			prefix := fmt.Sprintf("&SendMessageBatchRequestEntry.%d.", i+1)
			n := strconv.Itoa(i)
			r.text(prefix + "Id=" + n + prefix + "MessageBody=").message(s.body)
			if s.fifo {
				r.text(prefix + "MessageGroupId=").group().text(prefix + "MessageDeduplicationId=").stamp().text(n)
			}
		}
	case callReceive, callReceiveBatch:
		r.text(fmt.Sprintf("&MaxNumberOfMessages=%d&WaitTimeSeconds=%d", maxMessages(c), s.wait))
		if s.hide > 0 {
			r.text(fmt.Sprintf("&VisibilityTimeout=%d", s.hide))
		}
	case callExpire:
		r.text("&Attribute.1.Name=MessageRetentionPeriod&Attribute.1.Value=" + expireAfter)
	}
}

func maxMessages(c call) int {
	if c == callReceive {
		return 1
	}
	return maxBatch
}

// fillDelete writes the body of a delete of the handles into r; callDelete takes
// one.
func (s shape) fillDelete(r *request, c call, handles [][]byte) []byte {
	r.reset()
	switch {
	case s.protocol == JSON && c == callDelete:
		r.text(`{"QueueUrl":"`).text(s.queueURL).text(`","ReceiptHandle":"`).value(JSON, handles[0]).text(`"}`)
	case s.protocol == JSON:
		r.text(`{"QueueUrl":"`).text(s.queueURL).text(`","Entries":[`)
		for i, h := range handles {
			r.text(`{"Id":"`).text(digits[i]).text(`","ReceiptHandle":"`).value(JSON, h).text(`"},`)
		}
		r.bytes[len(r.bytes)-1] = ']'
		r.text("}")
	case c == callDelete:
		r.text("Action=DeleteMessage&Version=2012-11-05&QueueUrl=").text(s.queueURL).text("&ReceiptHandle=").value(Query, handles[0])
	default:
		r.text("Action=DeleteMessageBatch&Version=2012-11-05&QueueUrl=").text(s.queueURL)
		for i, h := range handles {
			r.text("&DeleteMessageBatchRequestEntry.").text(digits[i+1]).text(".Id=").text(digits[i])
			r.text("&DeleteMessageBatchRequestEntry.").text(digits[i+1]).text(".ReceiptHandle=").value(Query, h)
		}
	}
	return r.finish()
}

var digits = [maxBatch + 1]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}
