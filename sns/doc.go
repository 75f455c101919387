// Package sns is the topic half of the replicated state machine: topics,
// subscriptions, the filter engine, envelopes, retry policies and the table of
// delivery jobs. It is pure as package sqs is. The filter engine is built so far.
package sns
