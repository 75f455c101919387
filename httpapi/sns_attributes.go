package httpapi

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

var publishAttributes = wire.Map{Query: "MessageAttributes", Entry: "entry", Key: "Name", Value: "Value"}

// maxAttributeName is the longest name of a message attribute, in bytes.
const maxAttributeName = 256

func badAttribute(format string, args ...any) *sns.Error {
	return &sns.Error{Code: sns.ParameterValueInvalid, Message: fmt.Sprintf(format, args...)}
}

// readAttributes reads the message attributes of a publish, sorted by name. What the
// framework of AWS would find is added to found, under the path of the message.
func readAttributes(in wire.Input, path string, found *violations) ([]sns.MessageAttribute, *sns.Error) {
	entries, _ := in.StructMap(publishAttributes)
	var attributes []sns.MessageAttribute
	var refusal *sns.Error
	for _, e := range entries {
		if _, ok := e.Value.Text("DataType"); !ok {
			found.missing(path + "messageAttributes." + e.Key + ".member.dataType")
			continue
		}
		a, err := readPublishAttribute(e)
		if refusal == nil {
			refusal = err
		}
		attributes = append(attributes, a)
	}
	slices.SortStableFunc(attributes, func(a, b sns.MessageAttribute) int { return strings.Compare(a.Name, b.Name) })
	attributes = slices.CompactFunc(attributes, func(a, b sns.MessageAttribute) bool { return a.Name == b.Name })
	return attributes, refusal
}

// readPublishAttribute reads and checks one attribute (AWS recordings
// test_empty_or_wrong_message_attributes, test_message_attributes_prefixes).
func readPublishAttribute(e wire.Entry) (a sns.MessageAttribute, refusal *sns.Error) {
	a.Name = e.Key
	a.DataType, _ = e.Value.Text("DataType")
	if refusal = checkAttributeName(a.Name); refusal != nil {
		return a, refusal
	}
	base, label, labelled := strings.Cut(a.DataType, ".")
	if base != "String" && base != "Number" && base != "Binary" || labelled && label == "" {
		return a, badAttribute("The message attribute '%s' has an invalid message attribute type, "+
			"the set of supported type prefixes is Binary, Number, and String.", a.Name)
	}
	text, hasText := e.Value.Text("StringValue")
	blob, hasBlob := e.Value.Blob("BinaryValue")
	a.Binary = base == "Binary"
	a.Value = []byte(text)
	field, wrong := "String", hasBlob && !hasText
	if a.Binary {
		a.Value = blob
		field, wrong = "Binary", hasText && !hasBlob
	}
	switch {
	case wrong:
		return a, badAttribute("The message attribute '%s' with type '%s' must use field '%s'.", a.Name, base, field)
	case len(a.Value) == 0:
		return a, badAttribute("The message attribute '%s' must contain non-empty message attribute value for message attribute type '%s'.",
			a.Name, base)
	case base == "Number" && !sns.IsNumber(text):
		return a, badAttribute("Could not cast message attribute '%s' value to number.", a.Name)
	case !a.Binary && !sqs.ValidText(a.Value):
		return a, badAttribute("Invalid attribute value was passed in for message attribute")
	}
	return a, nil
}

// checkAttributeName checks the name of a message attribute.
func checkAttributeName(name string) *sns.Error {
	for _, c := range name {
		if !isNameRune(c) && c != '.' {
			return badAttribute("Invalid non-alphanumeric character '#x%X' was found in the message attribute name. "+
				"Can only include alphanumeric characters, hyphens, underscores, or dots.", c)
		}
	}
	switch {
	case len(name) > maxAttributeName || name == "":
		return badAttribute("Length of message attribute name must be less than 256 bytes.")
	case name[0] == '.':
		return badAttribute("Invalid message attribute name starting with character '.' was found.")
	case name[len(name)-1] == '.':
		return badAttribute("Invalid message attribute name ending with character '.' was found.")
	case strings.Contains(name, ".."):
		return badAttribute("Message attribute name can not have successive '.' character.")
	}
	return nil
}

func isNameRune(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-' || c == '_'
}
