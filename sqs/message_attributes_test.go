package sqs_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"holdfast.internal/sqs"
)

func stringAttribute(name, dataType, value string) sqs.MessageAttribute {
	return sqs.MessageAttribute{Name: name, DataType: dataType, Value: []byte(value)}
}

func binaryAttribute(name, value string) sqs.MessageAttribute {
	return sqs.MessageAttribute{Name: name, DataType: "Binary", Value: []byte(value), Binary: true}
}

// TestAttributesDigest compares with digests that AWS answered (AWS recordings
// test_receive_message_message_attribute_names_filters,
// test_send_message_with_binary_attributes,
// test_system_attributes_have_no_effect_on_attr_md5 and others).
func TestAttributesDigest(t *testing.T) {
	for _, tt := range []struct {
		attributes []sqs.MessageAttribute
		want       string
	}{
		{[]sqs.MessageAttribute{stringAttribute("k", "String", "x")}, "a45daa70926828a2f0a1db3418e6feb4"},
		{[]sqs.MessageAttribute{stringAttribute("Foo", "String", "Bar")}, "ae7155c6026991b6d54b11589678bf9c"},
		{[]sqs.MessageAttribute{stringAttribute("Hello", "String", "There")}, "a311262e065454b75da111d535b8dacd"},
		{[]sqs.MessageAttribute{stringAttribute("Hello", "String", "There"), stringAttribute("General", "String", "Kenobi")}, "fca026605781cb4126a1e9044df24232"},
		{[]sqs.MessageAttribute{stringAttribute("Hello", "String", "There"), stringAttribute("Help.Me", "String", "Me")}, "83fee93c1bcd8b9a5a923ffacdc636c7"},
		{[]sqs.MessageAttribute{
			stringAttribute("Hello", "String", "There"), stringAttribute("General", "String", "Kenobi"), stringAttribute("Help.Me", "String", "Me"),
		}, "4c360f3fdafd970e05fae2f149d997f5"},
		{[]sqs.MessageAttribute{stringAttribute("MyAttribute", "String", "foobar")}, "adb59cd4678ea5a855436b949cd07ab6"},
		{[]sqs.MessageAttribute{stringAttribute("color", "String", "blue")}, "da1b33cc3cbfe8b1630921e78e6b9880"},
		{[]sqs.MessageAttribute{
			stringAttribute("color", "String", "blue"), stringAttribute("count", "Number", "3"), binaryAttribute("blob", "\x01\x02\x03"),
		}, "d838729972a4b70e2d2acd9d59ac847c"},
		{[]sqs.MessageAttribute{
			binaryAttribute("attr1", "traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01"),
		}, "8cbe4db156db8a94db8b801b7addb984"},
		{[]sqs.MessageAttribute{stringAttribute("timestamp", "Number", "1493147359900")}, "235c5c510d26fb653d073faed50ae77c"},
		{[]sqs.MessageAttribute{
			stringAttribute("AWSTraceHeader", "String", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"),
		}, "5ae4d5d7636402d80f4eb6d213245a88"},
	} {
		sqs.SortMessageAttributes(tt.attributes)
		digest := sqs.AttributesDigest(tt.attributes)
		if got := hex.EncodeToString(digest[:]); got != tt.want {
			t.Errorf("digest of %v: got %s, want %s", tt.attributes, got, tt.want)
		}
	}
}

func TestValidateMessageAttributes(t *testing.T) {
	eleven := make([]sqs.MessageAttribute, 11)
	for i := range eleven {
		eleven[i] = stringAttribute(string(rune('a'+i)), "String", "x")
	}
	field := func(a sqs.MessageAttribute, isBinary bool) sqs.MessageAttribute {
		a.Binary = isBinary
		return a
	}
	for _, tt := range []struct {
		name       string
		attributes []sqs.MessageAttribute
		want       string // a part of the message; empty for none
	}{
		{"ten", eleven[:10], ""},
		{"eleven", eleven, "Number of message attributes [11] exceeds the allowed maximum [10]."},
		{"letters", []sqs.MessageAttribute{stringAttribute("attr.1øßä", "String", "x")}, ""},
		{"longest name", []sqs.MessageAttribute{stringAttribute(strings.Repeat("L", 256), "String", "x")}, ""},
		{"too long", []sqs.MessageAttribute{stringAttribute(strings.Repeat("L", 257), "String", "x")}, "must be shorter than 256 Bytes"},
		{"no name", []sqs.MessageAttribute{stringAttribute("", "String", "x")}, "The request must contain non-empty message (user) attribute names."},
		{"aws", []sqs.MessageAttribute{stringAttribute("aWs.-x", "String", "x")}, "You can't use message attribute names beginning with"},
		{"amazon", []sqs.MessageAttribute{stringAttribute("AMAZON.-x", "String", "x")}, "You can't use message attribute names beginning with"},
		{"first dot", []sqs.MessageAttribute{stringAttribute(".-x", "String", "x")}, "must not begin with character '.'."},
		{"last dot", []sqs.MessageAttribute{stringAttribute("x.", "String", "x")}, "must not end with character '.'."},
		{"two dots", []sqs.MessageAttribute{stringAttribute("x..y", "String", "x")}, "must not have successive '.' characters."},
		{"a!b", []sqs.MessageAttribute{stringAttribute("a!b", "String", "x")}, "Invalid"},
		{"a\"b", []sqs.MessageAttribute{stringAttribute("a\"b", "String", "x")}, "Invalid"},
		{"a§b", []sqs.MessageAttribute{stringAttribute("a§b", "String", "x")}, "Invalid"},
		{"a(b", []sqs.MessageAttribute{stringAttribute("a(b", "String", "x")}, "Invalid"},
		{"a?b", []sqs.MessageAttribute{stringAttribute("a?b", "String", "x")}, "Invalid"},
		{"twice", []sqs.MessageAttribute{stringAttribute("a", "String", "x"), stringAttribute("a", "String", "y")}, "already exists"},
		{"no type", []sqs.MessageAttribute{stringAttribute("x", "", "x")}, "The message (user) attribute 'x' must contain a non-empty message attribute type."},
		{"type", []sqs.MessageAttribute{stringAttribute("x", "Invalid", "x")}, "The type of message (user) attribute 'x' is invalid. You must use only the following supported type prefixes: Binary, Number, String."},
		{"type case", []sqs.MessageAttribute{stringAttribute("x", "string", "x")}, "The type of message (user) attribute 'x' is invalid."},
		{"type prefix only", []sqs.MessageAttribute{stringAttribute("x", "Strings", "x")}, "The type of message (user) attribute 'x' is invalid."},
		{"label", []sqs.MessageAttribute{stringAttribute("x", "Number.int", "1")}, ""},
		{"long label", []sqs.MessageAttribute{stringAttribute("x", "Number."+strings.Repeat("L", 256), "1")}, "The type of message (user) attribute 'x' is invalid."},
		{"empty", []sqs.MessageAttribute{stringAttribute("ErrorDetails", "String", "")}, "Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'."},
		{"control", []sqs.MessageAttribute{stringAttribute("x", "String", "a\bb")}, "Invalid characters found"},
		{"binary in text", []sqs.MessageAttribute{stringAttribute("x", "Binary", "a")}, "Message (user) attribute 'x' with type 'Binary' must use field 'Binary'."},
		{"text in binary", []sqs.MessageAttribute{field(stringAttribute("x", "Number", "1"), true)}, "Message (user) attribute 'x' with type 'Number' must use field 'String'."},
		{"control in binary", []sqs.MessageAttribute{binaryAttribute("x", "\x00")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := sqs.ValidateMessageAttributes(tt.attributes)
			switch {
			case err == nil && tt.want != "":
				t.Errorf("got no error, want %q", tt.want)
			case err != nil && (tt.want == "" || !strings.Contains(err.Message, tt.want) || err.Code != sqs.InvalidParameterValue):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for value, want := range map[string]bool{
		"0": true, "-1": true, "+1.50": true, "1e5": true, "1E-128": true, "1E+126": true, ".5": true, "5.": true,
		strings.Repeat("9", 38): true, strings.Repeat("9", 39): false, "1" + strings.Repeat("0", 126): true, "1" + strings.Repeat("0", 127): false,
		"0." + strings.Repeat("1", 38): true, "0." + strings.Repeat("1", 39): false, "000" + strings.Repeat("9", 38) + "000": true,
		"1E-129": false, "1E+127": false, "1e-400": false, "0e999": true, "0x10": false, "1_000": false, "inf": false,
		"NaN": false, "abc": false, "1 ": false, "1,5": false, "-": false, ".": false, "1e": false, "--1": false,
	} {
		err := sqs.ValidateMessageAttributes([]sqs.MessageAttribute{stringAttribute("Age", "Number", value)})
		if got := err == nil; got != want {
			t.Errorf("number %q: got %v, want %v", value, got, want)
		}
		if err != nil && err.Message != "Can't cast the value of message (user) attribute 'Age' to a number." {
			t.Errorf("number %q: got %q", value, err.Message)
		}
	}
}

// Name, type and value count alike.
func TestMessageAttributeSize(t *testing.T) {
	a := sqs.MessageAttribute{Name: "1", DataType: "22", Value: []byte("4444")}
	if got := a.Size(); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}
