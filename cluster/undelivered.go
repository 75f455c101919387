package cluster

import (
	"log/slog"
	"time"

	"holdfast.internal/sns"
)

// undelivered warns of subscriptions whose queue does not take what is published.
type undelivered struct{ reminders[sns.Event] }

func newUndelivered(elapsed func() time.Duration, leads func() bool, log *slog.Logger) *undelivered {
	return &undelivered{reminders[sns.Event]{elapsed: elapsed, leads: leads, warn: func(e sns.Event) {
		subscription := string(sns.AppendSubscriptionARN(nil, e.Topic.Name, e.Subscription))
		if e.Kind == sns.TextLogged {
			log.Info("publishes for a phone number; there is nothing that sends text messages",
				"account", e.Topic.Account, "subscription", subscription)
			return
		}
		if e.Kind == sns.DeliveryRedriven {
			log.Warn("publishes go to the dead-letter queue of a subscription",
				"account", e.Topic.Account, "subscription", subscription, "reason", e.Outcome.String())
			return
		}
		log.Error("publishes are lost for a subscription; it has no dead-letter queue that takes them",
			"account", e.Topic.Account, "subscription", subscription, "reason", e.Outcome.String())
	}}}
}

// notify hears what the publishes of a batch did.
func (u *undelivered) notify(events []sns.Event) {
	for _, e := range events {
		u.add(e)
	}
}
