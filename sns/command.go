package sns

// Command is a change to State, or a question that must be answered from a
// committed state. The set is closed: State.Apply knows all of them.
//
//sumtype:decl
type Command interface {
	snsCommand()
	// Target is the topic that the command is about. Its Name is empty for a
	// command about an account.
	Target() TopicKey
}

// TopicKey identifies a topic. A cluster is one region, so account and name
// suffice.
type TopicKey struct {
	Account string // 12 digits
	Name    string // with the .fifo suffix of a FIFO topic
}

// SubscriptionID is the last part of a subscription's ARN: a UUID, in binary. It
// is minted by whoever makes the command.
type SubscriptionID [16]byte

// MessageID is the UUID of a publish, in binary.
type MessageID [16]byte

// TokenHash is the SHA-256 of a confirmation token. State never has the token.
type TokenHash [32]byte

type (
	// CreateTopic makes a topic, or finds the one of that name. Attributes are
	// from CanonicalTopicAttributes.
	CreateTopic struct {
		Topic                TopicKey
		Attributes           []Attribute
		Tags                 []Tag  // sorted by key (SortTags)
		DataProtectionPolicy string // empty: none
	}
	// DeleteTopic removes a topic with its subscriptions. One that does not exist
	// is as good as deleted.
	DeleteTopic struct{ Topic TopicKey }
	// ListTopics asks for the names of an account's topics, in order.
	ListTopics struct {
		Account string
		After   string // only names greater than this; empty from the start
		Limit   int    // at most so many names; 1–MaxPage
	}
	// GetTopicAttributes asks for all attributes of a topic.
	GetTopicAttributes struct{ Topic TopicKey }
	// SetTopicAttributes sets one attribute; an empty Value resets it.
	SetTopicAttributes struct {
		Topic     TopicKey
		Attribute Attribute // from CanonicalTopicAttribute
	}
	// ReplaceTopicPolicy gives a topic another access policy, but only while it
	// has the one that the new one was made of. AddPermission and
	// RemovePermission are carried out by it.
	ReplaceTopicPolicy struct {
		Topic    TopicKey
		Old, New string // empty stands for the default policy
	}
	// TagResource adds tags to a topic, or overwrites those of equal key.
	TagResource struct {
		Topic TopicKey
		Tags  []Tag // sorted by key
	}
	// UntagResource removes tags; unknown keys are ignored.
	UntagResource struct {
		Topic TopicKey
		Keys  []string
	}
	// ListTagsForResource asks for a topic's tags.
	ListTagsForResource struct{ Topic TopicKey }
	// PutDataProtectionPolicy stores a policy, which nothing enforces.
	PutDataProtectionPolicy struct {
		Topic  TopicKey
		Policy string // from CanonicalDataProtectionPolicy; empty removes it
	}
	// GetDataProtectionPolicy asks for it.
	GetDataProtectionPolicy struct{ Topic TopicKey }
)

type (
	// Subscribe makes a subscription, or finds the one of the same topic,
	// protocol and endpoint.
	Subscribe struct {
		Topic        TopicKey
		Subscription SubscriptionID // of a new one
		Protocol     Protocol
		Endpoint     string      // checked by ValidateEndpoint
		Attributes   []Attribute // names checked by ValidateSubscriptionAttributes
		Principal    string      // ARN of the caller
		Owner        string      // account of the caller
		Token        TokenHash   // of a pending one's confirmation
	}
	// ConfirmSubscription confirms the subscription that the token is of, whatever
	// the topic.
	ConfirmSubscription struct {
		Topic TopicKey
		Token TokenHash
		// Signed says that the caller is known. AuthenticateOnUnsubscribe is what a
		// signed caller asks for.
		Signed                    bool
		AuthenticateOnUnsubscribe bool
	}
	// Unsubscribe removes a subscription. One that does not exist is as good as
	// removed.
	Unsubscribe struct {
		Topic        TopicKey
		Subscription SubscriptionID
		Signed       bool // the caller is known, and is of the owner's account
	}
	// ListSubscriptions asks for the subscriptions that an account has made, to
	// whosever topics, in the order of topic, protocol and endpoint.
	ListSubscriptions struct {
		Account string
		After   SubscriptionPlace // only subscriptions behind it
		Limit   int               // 1–MaxPage
	}
	// ListSubscriptionsByTopic asks for those of one topic. After.Topic is of no
	// interest.
	ListSubscriptionsByTopic struct {
		Topic TopicKey
		After SubscriptionPlace
		Limit int
	}
	// SubscriptionPlace is the place of a subscription in a list (PlaceOf); the zero
	// value is the start. It goes through the hands of clients, so it has no more of
	// an endpoint than they may see.
	SubscriptionPlace struct {
		Topic        TopicKey
		Protocol     Protocol
		Endpoint     string // up to the password, if it has one
		Subscription SubscriptionID
	}
	// GetSubscriptionAttributes asks for all attributes of a subscription.
	GetSubscriptionAttributes struct {
		Topic        TopicKey
		Subscription SubscriptionID
	}
	// SetSubscriptionAttributes sets one attribute. What an empty Value means
	// depends on the attribute.
	SetSubscriptionAttributes struct {
		Topic        TopicKey
		Subscription SubscriptionID
		Attribute    Attribute
		Reset        bool // no value was given: the attribute is as in a new subscription
	}
)

type (
	// PublishBatch publishes up to ten messages.
	PublishBatch struct {
		Topic   TopicKey
		Entries []PublishEntry
		// Single says that it is a Publish: what is too long has another error.
		Single bool
	}
	// PublishEntry is one message to publish. Its content travels beside the
	// command; whoever applies the command puts it in.
	PublishEntry struct {
		MessageID MessageID
		Size      int    // bytes that count against MaximumMessageSize (Size)
		GroupID   string // MessageGroupId; empty: none

		// DeduplicationID is the explicit id; empty means, on a FIFO topic, the
		// hash of the message, SHA256.
		DeduplicationID string
		SHA256          [32]byte // FIFO without DeduplicationID only

		Content []byte // from AppendMessage; beside the command
	}
)

type (
	// SetSMSAttributes stores an account's settings for text messages.
	SetSMSAttributes struct {
		Account    string
		Attributes []Attribute // checked by ValidateSMSAttribute, sorted by name
	}
	// GetSMSAttributes asks for all of them.
	GetSMSAttributes struct{ Account string }
)

func (CreateTopic) snsCommand()               {}
func (DeleteTopic) snsCommand()               {}
func (ListTopics) snsCommand()                {}
func (GetTopicAttributes) snsCommand()        {}
func (SetTopicAttributes) snsCommand()        {}
func (ReplaceTopicPolicy) snsCommand()        {}
func (TagResource) snsCommand()               {}
func (UntagResource) snsCommand()             {}
func (ListTagsForResource) snsCommand()       {}
func (PutDataProtectionPolicy) snsCommand()   {}
func (GetDataProtectionPolicy) snsCommand()   {}
func (Subscribe) snsCommand()                 {}
func (ConfirmSubscription) snsCommand()       {}
func (Unsubscribe) snsCommand()               {}
func (ListSubscriptions) snsCommand()         {}
func (ListSubscriptionsByTopic) snsCommand()  {}
func (GetSubscriptionAttributes) snsCommand() {}
func (SetSubscriptionAttributes) snsCommand() {}
func (PublishBatch) snsCommand()              {}
func (SetSMSAttributes) snsCommand()          {}
func (GetSMSAttributes) snsCommand()          {}

// Target implements Command.
func (c CreateTopic) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c DeleteTopic) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c ListTopics) Target() TopicKey { return TopicKey{Account: c.Account} }

// Target implements Command.
func (c GetTopicAttributes) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c SetTopicAttributes) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c ReplaceTopicPolicy) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c TagResource) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c UntagResource) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c ListTagsForResource) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c PutDataProtectionPolicy) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c GetDataProtectionPolicy) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c Subscribe) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c ConfirmSubscription) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c Unsubscribe) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c ListSubscriptions) Target() TopicKey { return TopicKey{Account: c.Account} }

// Target implements Command.
func (c ListSubscriptionsByTopic) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c GetSubscriptionAttributes) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c SetSubscriptionAttributes) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c PublishBatch) Target() TopicKey { return c.Topic }

// Target implements Command.
func (c SetSMSAttributes) Target() TopicKey { return TopicKey{Account: c.Account} }

// Target implements Command.
func (c GetSMSAttributes) Target() TopicKey { return TopicKey{Account: c.Account} }
