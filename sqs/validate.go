package sqs

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// validCharacters ends the texts about characters that XML 1.0 does not allow.
const validCharacters = "Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"

// ValidText reports whether text is UTF-8 of the characters that a message may
// hold: those of XML 1.0 (SQS API reference, SendMessage).
func ValidText(text []byte) bool {
	for len(text) >= 8 {
		w := binary.LittleEndian.Uint64(text)
		// A bit 7 set: not ASCII, or (as the borrow shows) below a space.
		if (w|(w-0x2020202020202020))&0x8080808080808080 != 0 {
			n := validPrefix(text)
			if n < 0 {
				return false
			}
			text = text[n:]
			continue
		}
		text = text[8:]
	}
	for len(text) > 0 {
		n := validPrefix(text)
		if n < 0 {
			return false
		}
		text = text[n:]
	}
	return true
}

// validPrefix returns the length of the characters that text begins with, up
// to eight bytes of them and at least one; negative if the first ones are not
// allowed.
func validPrefix(text []byte) int {
	n := 0
	for n < len(text) && n < 8 {
		if c := text[n]; c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
				return -1
			}
			n++
			continue
		}
		r, size := utf8.DecodeRune(text[n:])
		if r == utf8.RuneError && size == 1 || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		n += size
	}
	return n
}

// ValidateBody checks the body of a message, apart from its size.
func ValidateBody(body []byte) *Error {
	if len(body) == 0 {
		return MissingParameterError("MessageBody")
	}
	if !ValidText(body) {
		return &Error{Code: InvalidMessageContents, Message: "Invalid characters found. " + validCharacters}
	}
	return nil
}

// MissingParameterError returns the answer to a request without the parameter.
func MissingParameterError(name string) *Error {
	return &Error{Code: MissingParameter, Message: "The request must contain the parameter " + name + "."}
}

// NoSuchQueue is the answer to any call on a queue that is not there.
func NoSuchQueue() *Error {
	return &Error{Code: QueueDoesNotExist, Message: "The specified queue does not exist."}
}

// IsFIFO reports whether a queue of this name is a FIFO queue.
func IsFIFO(name string) bool { return strings.HasSuffix(name, FIFOSuffix) }

// ValidQueueName reports whether a queue of either type may have this name.
func ValidQueueName(name string) bool {
	stem := strings.TrimSuffix(name, FIFOSuffix)
	return len(name) <= MaxQueueName && isIdentifier(stem)
}

// ValidateQueueName checks the name of a queue that is to be made; fifo says
// that its FifoQueue attribute is true.
func ValidateQueueName(name string, fifo bool) *Error {
	switch {
	case name == "":
		return Invalidf("Queue name cannot be empty")
	case fifo && (!IsFIFO(name) || !ValidQueueName(name)):
		return Invalidf("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, " +
			"must end with .fifo suffix and be 1 to 80 in length.")
	case !fifo && (IsFIFO(name) || !ValidQueueName(name)):
		return Invalidf("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return nil
}

// ValidBatchEntryID reports whether id may name an entry of a batch.
func ValidBatchEntryID(id string) bool { return len(id) <= MaxBatchEntryID && isIdentifier(id) }

// isIdentifier reports whether s is made of letters, digits, hyphens and
// underscores, and of at least one.
func isIdentifier(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}

// ValidID reports whether id may be a MessageGroupId, MessageDeduplicationId
// or ReceiveRequestAttemptId: 1 to 128 visible ASCII characters.
func ValidID(id string) bool {
	for i := 0; i < len(id); i++ {
		if c := id[i]; c <= ' ' || c > '~' {
			return false
		}
	}
	return id != "" && len(id) <= MaxIDLength
}

// ValidateID checks the value of parameter name by ValidID.
func ValidateID(name, id string) *Error {
	if ValidID(id) {
		return nil
	}
	return Invalidf("Value %s for parameter %s is invalid. Reason: %s can only include alphanumeric and punctuation characters. "+
		"1 to 128 in length.", id, name, name)
}

// ValidateDelay checks the DelaySeconds of a message.
func ValidateDelay(seconds int64, fifo bool) *Error {
	switch {
	case seconds < 0 || seconds > int64(MaxDelay/time.Second):
		return Invalidf("Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.", seconds)
	case fifo && seconds > 0:
		return Invalidf("Value %d for parameter DelaySeconds is invalid. "+
			"Reason: The request include parameter that is not valid for this queue type.", seconds)
	}
	return nil
}

// ValidateRange checks an integer parameter against its bounds, both
// inclusive; rule is the end of the text, as AWS words it for the parameter.
func ValidateRange(name string, v, least, most int64, rule string) *Error {
	if v < least || v > most {
		return Invalidf("Value %d for parameter %s is invalid. Reason: %s", v, name, rule)
	}
	return nil
}

// ValidateTags checks tags that are to be added to a queue of this name.
func ValidateTags(queue string, tags []Tag) *Error {
	if len(tags) > MaxTags {
		return tooManyTags(queue)
	}
	for _, t := range tags {
		if err := ValidateTagKey(t.Key); err != nil {
			return err
		}
		if hasPrefixFold(t.Key, "aws:") {
			return Invalidf("Tag keys must not begin with aws:, which is reserved for system use.")
		}
		if !tagText(t.Key) {
			return Invalidf("Tag keys may only contain %s", tagAlphabet)
		}
		if utf8.RuneCountInString(t.Value) > MaxTagValue {
			return Invalidf("Tag values must be between 0 and 256 characters in length.")
		}
		if !tagText(t.Value) {
			return Invalidf("Tag values may only contain %s", tagAlphabet)
		}
	}
	return nil
}

// tagAlphabet is what AWS says about the characters of a tag.
const tagAlphabet = "unicode letters, digits, whitespace, or one of these symbols: _ . : / = + - @"

// ValidateTagKey checks the length of a tag's key.
func ValidateTagKey(key string) *Error {
	if n := utf8.RuneCountInString(key); n < 1 || n > MaxTagKey {
		return Invalidf("Tag keys must be between 1 and 128 characters in length.")
	}
	return nil
}

func tagText(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSpace(r) && !strings.ContainsRune("_.:/=+-@", r) {
			return false
		}
	}
	return true
}

// BatchTooLong is the answer to a batch whose messages count size bytes
// together, more than MaxMessageSize.
func BatchTooLong(size int) *Error {
	return &Error{Code: BatchRequestTooLong, Message: fmt.Sprintf(
		"Batch requests cannot be longer than %d bytes. You have sent %d bytes.", MaxMessageSize, size)}
}

// ValidateBatchCount checks how many entries a batch request has; entry is the
// Query name of one.
func ValidateBatchCount(entry string, count int) *Error {
	switch {
	case count == 0:
		return &Error{Code: EmptyBatchRequest, Message: "There should be at least one " + entry + " in the request."}
	case count > MaxBatchEntries:
		return &Error{Code: TooManyEntriesInBatchRequest, Message: fmt.Sprintf(
			"Maximum number of entries per request are %d. You have sent %d.", MaxBatchEntries, count)}
	}
	return nil
}

// ValidateBatchIDs checks the ids of the entries of a batch request.
func ValidateBatchIDs(ids []string) *Error {
	for _, id := range ids {
		if !ValidBatchEntryID(id) {
			return &Error{Code: InvalidBatchEntryId, Message: "A batch entry id can only contain alphanumeric characters, " +
				"hyphens and underscores. It can be at most 80 letters long."}
		}
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return &Error{Code: BatchEntryIdsNotDistinct, Message: "Id " + id + " repeated."}
		}
	}
	return nil
}
