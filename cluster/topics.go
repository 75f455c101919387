package cluster

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
)

// Topics describes all topics as of now, in the order of their keys.
func (n *Node) Topics() (topics []sns.TopicCensus) {
	n.machine.View(func(v raftfsm.View) { topics = v.Topics().Census() })
	return topics
}

// Topic describes one topic, and up to limit of its subscriptions behind a place;
// false when there is no such topic.
func (n *Node) Topic(key sns.TopicKey, after sns.SubscriptionPlace, limit int) (c sns.TopicCensus, page sns.ListSubscriptionsResult, ok bool) {
	n.machine.View(func(v raftfsm.View) { c, page, ok = v.Topics().Describe(key, after, limit) })
	return c, page, ok
}

// ensureSigningKey makes the key that SNS messages are signed with, unless there is
// one. It is done with the first topic: not every cluster has any.
func (n *Node) ensureSigningKey(ctx context.Context) error {
	settings := n.machine.Settings()
	if len(settings.SigningKeys) > 0 {
		return nil
	}
	_, err := n.addSigningKey(ctx, &settings, true)
	return err
}

// RotateSigningKey makes a new key, which signs what is published from then on, and
// returns the name of its certificate. Those of older keys are still served. The
// error is that of Do.
func (n *Node) RotateSigningKey(ctx context.Context) (certificate string, err error) {
	settings := n.machine.Settings()
	return n.addSigningKey(ctx, &settings, false)
}

func (n *Node) addSigningKey(ctx context.Context, settings *raftfsm.Settings, first bool) (certificate string, err error) {
	key, err := raftfsm.NewSigningKey(n.clock.now(), signingHosts(settings))
	if err != nil {
		return "", fmt.Errorf("add signing key: %w", err)
	}
	outcome, err := n.Do(ctx, raftfsm.AddSigningKey{Key: key, First: first})
	if err == nil {
		err = outcome.Err
	}
	return key.CertificateName(), err
}

// signingHosts are the names that a certificate is for: where it is fetched, and
// the host of AWS, which can stand in front of a cluster.
func signingHosts(settings *raftfsm.Settings) []string {
	var hosts []string
	for _, text := range []string{settings.SNSCertURL, settings.PublicURL, settings.SNSURL} {
		u, err := url.Parse(text)
		if err == nil && u.Hostname() != "" && !unspecified(u.Hostname()) {
			hosts = append(hosts, u.Hostname())
		}
	}
	return append(hosts, "sns."+settings.Region+".amazonaws.com")
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}
