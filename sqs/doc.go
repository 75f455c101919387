// Package sqs is the queue half of the replicated state machine.
//
// It is a pure function: State.Apply takes a Moment (cluster time and the
// replicated rules) and a command, and gives back a result and the events that
// follow from it. It starts no goroutine, takes no lock, does no I/O, reads no
// clock and draws no randomness, so every replica that applies the same
// commands holds the same queues.
//
// Names follow the Amazon SQS API reference: a command is called what its
// action is called, and the batch form stands for both (SendMessage is a
// SendMessageBatch of one entry). The content of a message is not here: State
// knows a body by its number and its size, and never sees its bytes.
package sqs
