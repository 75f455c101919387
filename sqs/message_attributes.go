package sqs

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MessageAttribute is one attribute that a sender gave to a message.
type MessageAttribute struct {
	Name     string
	DataType string // String, Number or Binary, and perhaps "." and a label
	Value    []byte // the text of a String or Number, the bytes of a Binary
	Binary   bool   // Value was given as a BinaryValue
}

// Size returns the bytes by which a counts against MaximumMessageSize.
func (a *MessageAttribute) Size() int { return len(a.Name) + len(a.DataType) + len(a.Value) }

// SortMessageAttributes puts attributes into the order of their names' bytes,
// which is the order that their digest is made in.
func SortMessageAttributes(attributes []MessageAttribute) {
	slices.SortFunc(attributes, func(a, b MessageAttribute) int { return strings.Compare(a.Name, b.Name) })
}

// AttributesDigest returns what the API calls MD5OfMessageAttributes (SQS
// developer guide, "Calculating the MD5 message digest for message
// attributes"). The attributes must be sorted by name.
func AttributesDigest(attributes []MessageAttribute) [md5.Size]byte {
	var stack [512]byte
	text := stack[:0]
	for i := range attributes {
		a := &attributes[i]
		text = appendDigestPart(text, a.Name)
		text = appendDigestPart(text, a.DataType)
		if a.Binary {
			text = append(text, 2)
		} else {
			text = append(text, 1)
		}
		text = appendDigestPart(text, a.Value)
	}
	return md5.Sum(text)
}

func appendDigestPart[T string | []byte](dst []byte, s T) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(s))), s...)
}

// attributeTypes are the types of message attributes before any label.
var attributeTypes = [...]string{"String", "Number", "Binary"}

// AttributeType returns which of String, Number and Binary dataType is, its
// label left off, and "" if it is none of them. Case counts.
func AttributeType(dataType string) string {
	base, _, _ := strings.Cut(dataType, ".")
	if !slices.Contains(attributeTypes[:], base) || len(dataType) > MaxMessageAttributeName {
		return ""
	}
	return base
}

// ValidateMessageAttributes checks the attributes of one message by the rules
// of SendMessage; they must be sorted by name. Only what a request may say
// about a value beside its text (which field it came in, whether it came in
// several) is for the caller to check.
func ValidateMessageAttributes(attributes []MessageAttribute) *Error {
	if len(attributes) > MaxMessageAttributes {
		return Invalidf("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(attributes), MaxMessageAttributes)
	}
	for i := range attributes {
		a := &attributes[i]
		if err := validateAttributeName(a.Name); err != nil {
			return err
		}
		if i > 0 && attributes[i-1].Name == a.Name {
			return Invalidf("Message (user) attribute name '%s' already exists.", a.Name)
		}
		if err := validateAttributeValue(a); err != nil {
			return err
		}
	}
	return nil
}

func validateAttributeName(name string) *Error {
	switch {
	case name == "":
		return Invalidf("The request must contain non-empty message (user) attribute names.")
	case len(name) > MaxMessageAttributeName:
		return Invalidf("Message (user) attribute names must be shorter than 256 Bytes")
	case hasPrefixFold(name, "aws.") || hasPrefixFold(name, "amazon."):
		return Invalidf("You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. " +
			"These strings are reserved for internal use.")
	case name[0] == '.':
		return Invalidf("Message (user) attribute name must not begin with character '.'.")
	case name[len(name)-1] == '.':
		return Invalidf("Message (user) attribute name must not end with character '.'.")
	case strings.Contains(name, ".."):
		return Invalidf("Message (user) attribute name must not have successive '.' characters.")
	}
	for _, r := range name {
		if !attributeNameRune(r) {
			return Invalidf("Invalid non-alphanumeric character '%#x' was found in the message attribute name. "+
				"Can only include alphanumeric characters, hyphens, underscores, or dots.", r)
		}
	}
	return nil
}

// attributeNameRune reports whether r may be part of an attribute's name. AWS
// documents ASCII only and accepts other letters too (AWS recording
// test_send_message_with_invalid_string_attributes).
func attributeNameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return isAlphanumeric(byte(r)) || r == '_' || r == '-' || r == '.'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func validateAttributeValue(a *MessageAttribute) *Error {
	if a.DataType == "" {
		return Invalidf("The message (user) attribute '%s' must contain a non-empty message attribute type.", a.Name)
	}
	base := AttributeType(a.DataType)
	switch {
	case base == "":
		return Invalidf("The type of message (user) attribute '%s' is invalid. "+
			"You must use only the following supported type prefixes: Binary, Number, String.", a.Name)
	case len(a.Value) == 0:
		return Invalidf("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", a.Name, base)
	case a.Binary != (base == "Binary"):
		field := "String"
		if base == "Binary" {
			field = "Binary"
		}
		return Invalidf("Message (user) attribute '%s' with type '%s' must use field '%s'.", a.Name, base, field)
	case base == "Number" && !isAttributeNumber(string(a.Value)):
		return Invalidf("Can't cast the value of message (user) attribute '%s' to a number.", a.Name)
	case base == "String" && !ValidText(a.Value):
		return Invalidf("Invalid characters found in the value of message (user) attribute '%s'. %s", a.Name, validCharacters)
	}
	return nil
}

// isAttributeNumber reports whether text is a decimal number of at most 38
// digits between -10^126 and 10^126, and not closer to zero than 10^-128.
func isAttributeNumber(text string) bool {
	mantissa := text
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == 'e' || c == 'E':
			mantissa = text[:min(i, len(mantissa))]
		case (c < '0' || c > '9') && c != '+' && c != '-' && c != '.':
			return false // also hexadecimal, infinities, digits with underscores
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	digits := significantDigits(mantissa)
	if err != nil || digits > 38 {
		return false
	}
	v = math.Abs(v)
	return digits == 0 || 1e-128 <= v && v <= 1e126
}

// significantDigits counts the digits of a number without the zeros that lead or
// trail, which AWS trims (SQS developer guide, "Message attribute data types").
func significantDigits(mantissa string) int {
	return len(strings.Trim(strings.ReplaceAll(strings.TrimLeft(mantissa, "+-"), ".", ""), "0"))
}

// Invalidf returns an InvalidParameterValue whose message is the formatted
// text.
func Invalidf(format string, args ...any) *Error {
	return &Error{Code: InvalidParameterValue, Message: fmt.Sprintf(format, args...)}
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
