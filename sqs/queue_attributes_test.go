package sqs_test

import (
	"strings"
	"testing"

	"holdfast.internal/sqs"
)

func TestValidateAttributeName(t *testing.T) {
	for _, tt := range []struct {
		name sqs.AttributeName
		fifo bool
		want string
	}{
		{"VisibilityTimeout", false, ""},
		{"visibilityTimeout", false, "Unknown Attribute visibilityTimeout."},
		{"Foobar", false, "Unknown Attribute Foobar."},
		{"QueueArn", false, "Unknown Attribute QueueArn."},
		{"All", true, "Unknown Attribute All."},
		{"FifoQueue", false, "Unknown Attribute FifoQueue."},
		{"ContentBasedDeduplication", false, "Unknown Attribute ContentBasedDeduplication."},
		{"DeduplicationScope", false, "You can specify the DeduplicationScope only when FifoQueue is set to true."},
		{"FifoThroughputLimit", false, "You can specify the FifoThroughputLimit only when FifoQueue is set to true."},
		{"FifoQueue", true, ""},
		{"ContentBasedDeduplication", true, ""},
		{"DeduplicationScope", true, ""},
		{"FifoThroughputLimit", true, ""},
	} {
		err := sqs.ValidateAttributeName(tt.name, tt.fifo)
		if got := message(err); got != tt.want || err != nil && err.Code != sqs.InvalidAttributeName {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCanonicalValue(t *testing.T) {
	for _, tt := range []struct {
		name        sqs.AttributeName
		value, want string // want is empty for an invalid value
	}{
		{"DelaySeconds", "0", "0"},
		{"DelaySeconds", "900", "900"},
		{"DelaySeconds", "901", ""},
		{"DelaySeconds", "007", "7"},
		{"DelaySeconds", "", ""},
		{"DelaySeconds", " 6", ""},
		{"DelaySeconds", "-45", ""},
		{"DelaySeconds", "+4", ""},
		{"DelaySeconds", "544.43", ""},
		{"DelaySeconds", "99999999999999999999", ""},
		{"MaximumMessageSize", "1023", ""},
		{"MaximumMessageSize", "1024", "1024"},
		{"MaximumMessageSize", "1048576", "1048576"},
		{"MaximumMessageSize", "1048577", ""},
		{"MessageRetentionPeriod", "59", ""},
		{"MessageRetentionPeriod", "60", "60"},
		{"MessageRetentionPeriod", "1209600", "1209600"},
		{"MessageRetentionPeriod", "1209601", ""},
		{"ReceiveMessageWaitTimeSeconds", "20", "20"},
		{"ReceiveMessageWaitTimeSeconds", "21", ""},
		{"VisibilityTimeout", "43200", "43200"},
		{"VisibilityTimeout", "43201", ""},
		{"KmsDataKeyReusePeriodSeconds", "59", ""},
		{"KmsDataKeyReusePeriodSeconds", "86400", "86400"},
		{"KmsDataKeyReusePeriodSeconds", "86401", ""},
		{"SqsManagedSseEnabled", "True", "true"},
		{"SqsManagedSseEnabled", "FALSE", "false"},
		{"SqsManagedSseEnabled", "1", ""},
		{"ContentBasedDeduplication", "yes", ""},
		{"DeduplicationScope", "queue", "queue"},
		{"DeduplicationScope", "Queue", ""},
		{"DeduplicationScope", "messageGroup", "messageGroup"},
		{"FifoThroughputLimit", "perQueue", "perQueue"},
		{"FifoThroughputLimit", "", ""},
		{"KmsMasterKeyId", "testKeyId", "testKeyId"},
		{"KmsMasterKeyId", strings.Repeat("k", 2048), strings.Repeat("k", 2048)},
		{"KmsMasterKeyId", strings.Repeat("k", 2049), ""},
		{"KmsMasterKeyId", "\x00", ""},
	} {
		got, err := sqs.CanonicalValue(tt.name, tt.value)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s=%q: got %q, %v, want %q", tt.name, tt.value, got, err, tt.want)
		}
		if want := "Invalid value for the parameter " + string(tt.name) + "."; err != nil && (err.Message != want || err.Code != sqs.InvalidAttributeValue) {
			t.Errorf("%s=%q: got %v, want %q", tt.name, tt.value, err, want)
		}
	}
}

// TestCanonicalValueUnknown: neither what cannot be set nor a document has a
// canonical value.
func TestCanonicalValueUnknown(t *testing.T) {
	for _, name := range []sqs.AttributeName{"Foobar", "QueueArn", sqs.Policy} {
		if got, err := sqs.CanonicalValue(name, "1"); got != "" || err == nil || err.Message != "Unknown Attribute "+string(name)+"." {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestValidateTogether(t *testing.T) {
	set := func(pairs ...string) (attributes []sqs.Attribute) {
		for i := 0; i < len(pairs); i += 2 {
			attributes = append(attributes, sqs.Attribute{Name: sqs.AttributeName(pairs[i]), Value: pairs[i+1]})
		}
		return attributes
	}
	for _, tt := range []struct {
		attributes []sqs.Attribute
		want       string
	}{
		{set("KmsMasterKeyId", "k", "SqsManagedSseEnabled", "false"), ""},
		{set("KmsMasterKeyId", "", "SqsManagedSseEnabled", "true"), ""},
		{set("KmsMasterKeyId", "k", "SqsManagedSseEnabled", "true"), "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."},
		{set("DeduplicationScope", "queue", "FifoThroughputLimit", "perMessageGroupId"), "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup"},
		{set("DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId"), ""},
		{set("FifoThroughputLimit", "perMessageGroupId"), ""},
	} {
		if got := message(sqs.ValidateTogether(tt.attributes)); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.attributes, got, tt.want)
		}
	}
}

func TestKnownAttribute(t *testing.T) {
	for name, want := range map[string]bool{
		"All": true, "QueueArn": true, "CreatedTimestamp": true, "Policy": true, "VisibilityTimeout": true,
		"ApproximateNumberOfMessagesNotVisible": true, "Foobar": false, "": false, "all": false, "SenderId": false,
	} {
		if got := sqs.KnownAttribute(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
