// Package conformance plays the SQS and SNS conformance cases against a running
// broker, those of SQS in both protocols, and compares the answers with those of AWS. It is
// a black box: it speaks HTTP and imports no room of the product.
//
// A case is a script that calls actions with the members of the AWS model; one
// script serves AWS JSON and AWS Query, since [wire] renders the members in
// either and reads both kinds of answer into one tree. README.md says which case is
// which test.
//
//	go test ./jepsen/conformance              builds the binary and starts it
//	go test ./jepsen/conformance -long        with the cases that take a minute
//	HOLDFAST_ENDPOINT=http://127.0.0.1:4566 go test ./jepsen/conformance
package conformance
