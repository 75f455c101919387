// Package policy evaluates access policies in the language of IAM: who may do
// what to a queue or topic. It is pure: the answer depends on the document and
// the request alone, so it can be used while log entries are applied.
//
// What is not understood never allows: Parse refuses a document with an unknown
// member, operator or version as a whole, and whoever has no Document treats the
// policy as one that allows nothing.
package policy
