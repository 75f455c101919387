// Package awsjson is the AWS JSON 1.0 protocol: requests as Document, responses
// with Writer.
//
// The reader is a strict one of its own. A lenient parser would take a lone
// surrogate or a bad escape as literal text, and so store a body that nobody
// sent; and the number of values that a request may have is bounded here, since
// a megabyte of brackets must not become a hundred megabytes of nodes.
package awsjson
