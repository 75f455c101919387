package sns

// Event is what a command means for anyone else than its caller.
type Event struct {
	Kind         EventKind
	Topic        TopicKey
	Subscription SubscriptionID
	Outcome      Outcome // why the copy did not reach its queue
}

// EventKind says what happened.
type EventKind uint8

const (
	// DeliveryRedriven says that a copy went to the subscription's dead-letter
	// queue in place of its queue.
	DeliveryRedriven EventKind = iota + 1
	// DeliveryFailed says that a copy is lost: it reached neither its queue nor a
	// dead-letter queue.
	DeliveryFailed
	// TextLogged says that a publish reached a subscription of sms, for which there
	// is nothing but the log.
	TextLogged
)
