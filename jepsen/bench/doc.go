// Package bench measures a broker over HTTP, alone or against its floor.
//
// The load comes from one goroutine per connection. On a small machine the load and
// the broker share the cores, so what the client costs is part of every ratio: by
// default it is Go's net/http, whose cost is near that of an SDK, and which the
// aims are meant for; Raw is a small client of its own that writes request bytes
// built before the clock starts, for those who want to see more of the broker.
//
// The floor is an echo server, a process of its own, that reads the very same
// requests and answers each with a copy of the broker's own answer. It costs
// what HTTP costs. Floor and broker run by turns, and the median of the ratios
// tells how much of what the machine can do the broker gives.
//
// Phases: send (SendMessage, or SendMessageBatch with --batch), batch (the same
// ten at a time), drain (ReceiveMessage × 10 and DeleteMessageBatch on a filled
// queue), cycle (send, receive and delete one), trip (from the call of a send to
// the answer of a long poll) and wake (from the answer of a send to the answer
// of a parked long poll); and, when they are asked for, publish (Publish to a topic
// with all queues) and deliver (drain, of queues that a topic filled).
package bench
