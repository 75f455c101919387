// Package sns is the topic half of the replicated state machine: topics,
// subscriptions, the filter engine, and the envelopes of what is delivered.
//
// It is pure as package sqs is: State.Apply takes a Moment and a command, and
// gives back a result and the events that follow from it. What a publish brings
// to queues goes through Moment.Outlet, which the caller implements; this package
// knows queues by their ARNs only.
//
// Names follow the Amazon SNS API reference. The batch form of a publish stands
// for both. Unlike package sqs, it sees the content of the publish at hand,
// because filter policies look into it.
package sns
