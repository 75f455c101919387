package raftfsm

import (
	"errors"
	"fmt"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// Command is what an operation asks for: a sqs.Command, a sns.Command, or one of
// this package's own: Form, OpenSession, Pulse, SetSetting, AddSigningKey.
type Command any

// Result is what a command gives back: a sqs.Result or a sns.Result.
type Result any

type (
	// Form is the first command of a cluster: it seeds the settings, handle
	// keys included. Once there is a cluster, a Form with another ClusterID is
	// refused with a *SettingError, and one with the same does nothing.
	Form struct {
		ClusterID string
		Settings  Settings
	}
	// Pulse does a bounded amount of the work that is due by now: expired
	// messages, reserved names (sqs.State.Pulse), publishes to many subscriptions
	// (sns.State.Pulse).
	Pulse struct{}
	// SetSetting changes one replicated setting (Settings.List has the names),
	// or is refused with a *SettingError.
	SetSetting struct{ Name, Value string }
)

// kindPublishBatch is a number of commandKinds that others ask for.
const kindPublishBatch = 30

// commandKinds numbers the commands in the log. A number is never used again
// for another command, and the fields of a command never change: old logs and
// older replicas still read them. The busiest come first, for the search.
var commandKinds = [...]kind[Command]{
	kindOf[Command](1, "SendMessageBatch", sendMessageBatchFields),
	kindOf[Command](2, "ReceiveMessage", receiveMessageFields),
	kindOf[Command](3, "DeleteMessageBatch", deleteMessageBatchFields),
	kindOf[Command](4, "ChangeMessageVisibilityBatch", changeMessageVisibilityBatchFields),
	kindOf[Command](5, "Pulse", pulseFields),
	kindOf[Command](kindPublishBatch, "PublishBatch", publishBatchFields),
	kindOf[Command](6, "GetQueueUrl", getQueueURLFields),
	kindOf[Command](7, "GetQueueAttributes", getQueueAttributesFields),
	kindOf[Command](8, "SetQueueAttributes", setQueueAttributesFields),
	kindOf[Command](9, "CreateQueue", createQueueFields),
	kindOf[Command](10, "DeleteQueue", deleteQueueFields),
	kindOf[Command](11, "PurgeQueue", purgeQueueFields),
	kindOf[Command](12, "ListQueues", listQueuesFields),
	kindOf[Command](13, "ListDeadLetterSourceQueues", listDeadLetterSourceQueuesFields),
	kindOf[Command](14, "ListQueueTags", listQueueTagsFields),
	kindOf[Command](15, "TagQueue", tagQueueFields),
	kindOf[Command](16, "UntagQueue", untagQueueFields),
	kindOf[Command](17, "StartMessageMoveTask", startMessageMoveTaskFields),
	kindOf[Command](18, "CancelMessageMoveTask", cancelMessageMoveTaskFields),
	kindOf[Command](19, "ListMessageMoveTasks", listMessageMoveTasksFields),
	kindOf[Command](20, "ReplacePolicy", replacePolicyFields),
	kindOf[Command](21, "RedriveMessage", redriveMessageFields),
	kindOf[Command](22, "OpenSession", openSessionFields),
	kindOf[Command](23, "MarkMessageDamaged", markMessageDamagedFields),
	kindOf[Command](31, "CreateTopic", createTopicFields),
	kindOf[Command](32, "DeleteTopic", deleteTopicFields),
	kindOf[Command](33, "ListTopics", listTopicsFields),
	kindOf[Command](34, "GetTopicAttributes", getTopicAttributesFields),
	kindOf[Command](35, "SetTopicAttributes", setTopicAttributesFields),
	kindOf[Command](36, "ReplaceTopicPolicy", replaceTopicPolicyFields),
	kindOf[Command](37, "TagResource", tagResourceFields),
	kindOf[Command](38, "UntagResource", untagResourceFields),
	kindOf[Command](39, "ListTagsForResource", listTagsForResourceFields),
	kindOf[Command](40, "PutDataProtectionPolicy", putDataProtectionPolicyFields),
	kindOf[Command](41, "GetDataProtectionPolicy", getDataProtectionPolicyFields),
	kindOf[Command](42, "Subscribe", subscribeFields),
	kindOf[Command](43, "ConfirmSubscription", confirmSubscriptionFields),
	kindOf[Command](44, "Unsubscribe", unsubscribeFields),
	kindOf[Command](45, "ListSubscriptions", listSubscriptionsFields),
	kindOf[Command](46, "ListSubscriptionsByTopic", listSubscriptionsByTopicFields),
	kindOf[Command](47, "GetSubscriptionAttributes", getSubscriptionAttributesFields),
	kindOf[Command](48, "SetSubscriptionAttributes", setSubscriptionAttributesFields),
	kindOf[Command](49, "SetSMSAttributes", setSMSAttributesFields),
	kindOf[Command](50, "GetSMSAttributes", getSMSAttributesFields),
	kindOf[Command](60, "AddSigningKey", addSigningKeyFields),
	kindOf[Command](128, "Form", formFields),
	kindOf[Command](129, "SetSetting", setSettingFields),
}

// resultKinds numbers the results, in digests and wherever a result is kept.
// The same rules hold as for commands. Zero is "no result".
var resultKinds = [...]kind[Result]{
	kindOf[Result](1, "SendMessageBatchResult", sendMessageBatchResultFields),
	kindOf[Result](2, "ReceiveMessageResult", receiveMessageResultFields),
	kindOf[Result](3, "BatchResult", batchResultFields),
	kindOf[Result](4, "Done", doneFields),
	kindOf[Result](5, "GetQueueAttributesResult", getQueueAttributesResultFields),
	kindOf[Result](6, "ListQueuesResult", listQueuesResultFields),
	kindOf[Result](7, "ListDeadLetterSourceQueuesResult", listDeadLetterSourceQueuesResultFields),
	kindOf[Result](8, "ListQueueTagsResult", listQueueTagsResultFields),
	kindOf[Result](9, "CancelMessageMoveTaskResult", cancelMessageMoveTaskResultFields),
	kindOf[Result](10, "ListMessageMoveTasksResult", listMessageMoveTasksResultFields),
	kindOf[Result](11, "ReplacePolicyResult", replacePolicyResultFields),
	kindOf[Result](12, "RedriveMessageResult", redriveMessageResultFields),
	kindOf[Result](20, "PublishBatchResult", publishBatchResultFields),
	kindOf[Result](21, "TopicDone", topicDoneFields),
	kindOf[Result](22, "ListTopicsResult", listTopicsResultFields),
	kindOf[Result](23, "GetTopicAttributesResult", getTopicAttributesResultFields),
	kindOf[Result](24, "ReplaceTopicPolicyResult", replaceTopicPolicyResultFields),
	kindOf[Result](25, "ListTagsForResourceResult", listTagsForResourceResultFields),
	kindOf[Result](26, "GetDataProtectionPolicyResult", getDataProtectionPolicyResultFields),
	kindOf[Result](27, "SubscribeResult", subscribeResultFields),
	kindOf[Result](28, "ConfirmSubscriptionResult", confirmSubscriptionResultFields),
	kindOf[Result](29, "ListSubscriptionsResult", listSubscriptionsResultFields),
	kindOf[Result](30, "GetSubscriptionAttributesResult", getSubscriptionAttributesResultFields),
	kindOf[Result](31, "GetSMSAttributesResult", getSMSAttributesResultFields),
}

// kind is a row of the tables: one type that implements I.
type kind[I any] struct {
	number byte
	name   string
	is     func(I) bool
	write  func(*fields, I)
	read   func(*fields) I
}

func kindOf[I, T any](number byte, name string, walk func(*fields, T) T) kind[I] {
	return kind[I]{
		number: number,
		name:   name,
		is:     func(v I) bool { _, ok := any(v).(T); return ok },
		write:  func(f *fields, v I) { walk(f, any(v).(T)) },
		read: func(f *fields) I {
			var v T
			return any(walk(f, v)).(I)
		},
	}
}

func findKind[I any](kinds []kind[I], v I) *kind[I] {
	for i := range kinds {
		if kinds[i].is(v) {
			return &kinds[i]
		}
	}
	return nil
}

func findNumber[I any](kinds []kind[I], number byte) *kind[I] {
	for i := range kinds {
		if kinds[i].number == number {
			return &kinds[i]
		}
	}
	return nil
}

var (
	errKind       = errors.New("unknown kind")
	errNotCommand = errors.New("not a command")
	errBodies     = errors.New("as many bodies as entries to send are needed")
)

// AppendCommand encodes a command. A SendMessageBatch needs one body for each
// entry (sqs.AppendContent), and so does a PublishBatch (sns.AppendMessage); other
// commands have none. It fails for what is
// not a command and for lists that are longer than any valid request's.
func AppendCommand(dst []byte, c Command, bodies [][]byte) ([]byte, error) {
	k := findKind(commandKinds[:], c)
	if k == nil {
		return dst, fmt.Errorf("encode %T: %w", c, errNotCommand)
	}
	if len(bodies) != bodiesOf(c) {
		return dst, fmt.Errorf("encode %s: %w: %d bodies", k.name, errBodies, len(bodies))
	}
	f := fields{data: dst}
	f.byte(k.number)
	k.write(&f, c)
	for _, b := range bodies {
		f.bytes(b)
	}
	if err := f.end(); err != nil {
		return dst, fmt.Errorf("encode %s: %w", k.name, err)
	}
	return f.data, nil
}

// bodiesOf is the number of bodies that travel beside c.
func bodiesOf(c Command) int {
	switch c := c.(type) {
	case sqs.SendMessageBatch:
		return len(c.Entries)
	case sns.PublishBatch:
		return len(c.Entries)
	}
	return 0
}

// DecodeCommand is the inverse of AppendCommand. The bodies alias b, which must
// not change afterwards.
func DecodeCommand(b []byte) (Command, [][]byte, error) {
	return appendBodies(nil, b, nil)
}

// appendBodies is DecodeCommand with the bodies in the spare room of dst, and
// names out of an interner.
func appendBodies(dst [][]byte, b []byte, names *interner) (Command, [][]byte, error) {
	f := fields{data: b, reading: true, names: names}
	number := f.byte(0)
	k := findNumber(commandKinds[:], number)
	if k == nil { // an empty command has number 0, which no kind has
		return nil, nil, fmt.Errorf("decode command: %w %d", errKind, number)
	}
	c := k.read(&f)
	for range bodiesOf(c) {
		dst = append(dst, f.bytes(nil))
	}
	if err := f.end(); err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w", k.name, err)
	}
	return c, dst, nil
}

// CommandName is the name of a command as the log's readers print it: the AWS
// action for those of sqs and sns. It is empty for what is not a command.
func CommandName(c Command) string {
	if k := findKind(commandKinds[:], c); k != nil {
		return k.name
	}
	return ""
}
