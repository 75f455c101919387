package sns

// Result is what a command gives back to the caller who sent it.
//
//sumtype:decl
type Result interface{ snsResult() }

type (
	// Done is the result of every command whose action has no output, and of
	// CreateTopic: what was asked for holds now.
	Done struct{}
	// ListTopicsResult lists names in ascending order.
	ListTopicsResult struct {
		Names []string
		More  bool // there are names after the last one
	}
	// GetTopicAttributesResult is all that a topic has for attributes
	// (TopicAttributes makes the map of the API from it).
	GetTopicAttributesResult struct {
		Attributes                  []Attribute // those that were set, sorted by name
		Confirmed, Pending, Deleted int         // subscriptions
	}
	// ReplaceTopicPolicyResult has the policy that the topic has now.
	ReplaceTopicPolicyResult struct {
		Replaced bool
		Policy   string // empty: the default policy
	}
	// ListTagsForResourceResult lists tags sorted by key.
	ListTagsForResourceResult struct{ Tags []Tag }
	// GetDataProtectionPolicyResult has an empty Policy if there is none.
	GetDataProtectionPolicyResult struct{ Policy string }
	// SubscribeResult tells which subscription it is.
	SubscribeResult struct {
		Subscription SubscriptionID
		Pending      bool // it waits for its confirmation
	}
	// ConfirmSubscriptionResult tells which subscription was confirmed.
	ConfirmSubscriptionResult struct {
		Topic        TopicKey
		Subscription SubscriptionID
	}
	// ListSubscriptionsResult is the result of both lists.
	ListSubscriptionsResult struct {
		Subscriptions []ListedSubscription
		More          bool
	}
	// ListedSubscription is a subscription in a list.
	ListedSubscription struct {
		Topic        TopicKey
		Subscription SubscriptionID
		Owner        string
		Protocol     Protocol
		Endpoint     string
		Pending      bool
	}
	// GetSubscriptionAttributesResult is all that there is to know about a
	// subscription (SubscriptionAttributes makes the map of the API from it).
	GetSubscriptionAttributesResult struct {
		ListedSubscription
		Principal     string
		Authenticated bool        // ConfirmationWasAuthenticated
		Attributes    []Attribute // those that were set, sorted by name
		TopicPolicy   string      // the topic's DeliveryPolicy, for what is effective
	}
	// PublishBatchResult has one outcome for each entry, in their order.
	PublishBatchResult struct{ Entries []PublishResult }
	// PublishResult is the outcome of one PublishEntry.
	PublishResult struct {
		MessageID      MessageID // of a duplicate, the original's
		SequenceNumber uint64    // FIFO topics only; counted from 1 in each topic
		// Body is the number of the publish's record; 0 when no subscription
		// matched, or it is a duplicate. Copies counts those of this log entry; Pulses
		// may add more.
		Body   uint64
		Copies int
	}
	// GetSMSAttributesResult lists what was set, sorted by name.
	GetSMSAttributesResult struct{ Attributes []Attribute }
)

func (Done) snsResult()                            {}
func (ListTopicsResult) snsResult()                {}
func (GetTopicAttributesResult) snsResult()        {}
func (ReplaceTopicPolicyResult) snsResult()        {}
func (ListTagsForResourceResult) snsResult()       {}
func (GetDataProtectionPolicyResult) snsResult()   {}
func (SubscribeResult) snsResult()                 {}
func (ConfirmSubscriptionResult) snsResult()       {}
func (ListSubscriptionsResult) snsResult()         {}
func (GetSubscriptionAttributesResult) snsResult() {}
func (PublishBatchResult) snsResult()              {}
func (GetSMSAttributesResult) snsResult()          {}
