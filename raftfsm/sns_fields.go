package raftfsm

import (
	"holdfast.internal/sns"
)

// The most items that a list of SNS's commands and results may have.
const (
	maxTopicAttributes = 64  // AWS knows 26 that can be set
	maxPage            = 100 // AWS: of all lists
)

// The fields of what the commands share.

func topicKeyFields(f *fields, k sns.TopicKey) sns.TopicKey {
	k.Account = f.name(k.Account)
	k.Name = f.name(k.Name)
	return k
}

func topicAttributeFields(f *fields, a sns.Attribute) sns.Attribute {
	a.Name = sns.AttributeName(f.name(string(a.Name)))
	a.Value = f.str(a.Value)
	return a
}

func topicAttributesFields(f *fields, a []sns.Attribute) []sns.Attribute {
	return list(f, a, maxTopicAttributes, topicAttributeFields)
}

func topicTagFields(f *fields, t sns.Tag) sns.Tag {
	t.Key = f.str(t.Key)
	t.Value = f.str(t.Value)
	return t
}

func subscriptionPlaceFields(f *fields, p sns.SubscriptionPlace) sns.SubscriptionPlace {
	p.Topic = topicKeyFields(f, p.Topic)
	p.Protocol = sns.Protocol(f.byte(byte(p.Protocol)))
	p.Endpoint = f.str(p.Endpoint)
	f.fixed(p.Subscription[:])
	return p
}

func topicErrorFields(f *fields, e sns.Error) sns.Error {
	e.Code = sns.Code(f.name(string(e.Code)))
	e.Message = f.str(e.Message)
	return e
}

// Commands about topics.

func createTopicFields(f *fields, c sns.CreateTopic) sns.CreateTopic {
	c.Topic = topicKeyFields(f, c.Topic)
	c.Attributes = topicAttributesFields(f, c.Attributes)
	c.Tags = list(f, c.Tags, maxTags, topicTagFields)
	c.DataProtectionPolicy = f.str(c.DataProtectionPolicy)
	return c
}

func deleteTopicFields(f *fields, c sns.DeleteTopic) sns.DeleteTopic {
	c.Topic = topicKeyFields(f, c.Topic)
	return c
}

func listTopicsFields(f *fields, c sns.ListTopics) sns.ListTopics {
	c.Account = f.name(c.Account)
	c.After = f.str(c.After)
	c.Limit = f.int(c.Limit)
	return c
}

func getTopicAttributesFields(f *fields, c sns.GetTopicAttributes) sns.GetTopicAttributes {
	c.Topic = topicKeyFields(f, c.Topic)
	return c
}

func setTopicAttributesFields(f *fields, c sns.SetTopicAttributes) sns.SetTopicAttributes {
	c.Topic = topicKeyFields(f, c.Topic)
	c.Attribute = topicAttributeFields(f, c.Attribute)
	return c
}

func replaceTopicPolicyFields(f *fields, c sns.ReplaceTopicPolicy) sns.ReplaceTopicPolicy {
	c.Topic = topicKeyFields(f, c.Topic)
	c.Old = f.str(c.Old)
	c.New = f.str(c.New)
	return c
}

func tagResourceFields(f *fields, c sns.TagResource) sns.TagResource {
	c.Topic = topicKeyFields(f, c.Topic)
	c.Tags = list(f, c.Tags, maxTags, topicTagFields)
	return c
}

func untagResourceFields(f *fields, c sns.UntagResource) sns.UntagResource {
	c.Topic = topicKeyFields(f, c.Topic)
	c.Keys = list(f, c.Keys, maxTagKeys, stringFields)
	return c
}

func listTagsForResourceFields(f *fields, c sns.ListTagsForResource) sns.ListTagsForResource {
	c.Topic = topicKeyFields(f, c.Topic)
	return c
}

func putDataProtectionPolicyFields(f *fields, c sns.PutDataProtectionPolicy) sns.PutDataProtectionPolicy {
	c.Topic = topicKeyFields(f, c.Topic)
	c.Policy = f.str(c.Policy)
	return c
}

func getDataProtectionPolicyFields(f *fields, c sns.GetDataProtectionPolicy) sns.GetDataProtectionPolicy {
	c.Topic = topicKeyFields(f, c.Topic)
	return c
}

// Commands about subscriptions.

func subscribeFields(f *fields, c sns.Subscribe) sns.Subscribe {
	c.Topic = topicKeyFields(f, c.Topic)
	f.fixed(c.Subscription[:])
	c.Protocol = sns.Protocol(f.byte(byte(c.Protocol)))
	c.Endpoint = f.str(c.Endpoint)
	c.Attributes = topicAttributesFields(f, c.Attributes)
	c.Principal = f.name(c.Principal)
	c.Owner = f.name(c.Owner)
	f.fixed(c.Token[:])
	return c
}

func confirmSubscriptionFields(f *fields, c sns.ConfirmSubscription) sns.ConfirmSubscription {
	c.Topic = topicKeyFields(f, c.Topic)
	f.fixed(c.Token[:])
	c.Signed = f.bool(c.Signed)
	c.AuthenticateOnUnsubscribe = f.bool(c.AuthenticateOnUnsubscribe)
	return c
}

func unsubscribeFields(f *fields, c sns.Unsubscribe) sns.Unsubscribe {
	c.Topic = topicKeyFields(f, c.Topic)
	f.fixed(c.Subscription[:])
	c.Signed = f.bool(c.Signed)
	return c
}

func listSubscriptionsFields(f *fields, c sns.ListSubscriptions) sns.ListSubscriptions {
	c.Account = f.name(c.Account)
	c.After = subscriptionPlaceFields(f, c.After)
	c.Limit = f.int(c.Limit)
	return c
}

func listSubscriptionsByTopicFields(f *fields, c sns.ListSubscriptionsByTopic) sns.ListSubscriptionsByTopic {
	c.Topic = topicKeyFields(f, c.Topic)
	c.After = subscriptionPlaceFields(f, c.After)
	c.Limit = f.int(c.Limit)
	return c
}

func getSubscriptionAttributesFields(f *fields, c sns.GetSubscriptionAttributes) sns.GetSubscriptionAttributes {
	c.Topic = topicKeyFields(f, c.Topic)
	f.fixed(c.Subscription[:])
	return c
}

func setSubscriptionAttributesFields(f *fields, c sns.SetSubscriptionAttributes) sns.SetSubscriptionAttributes {
	c.Topic = topicKeyFields(f, c.Topic)
	f.fixed(c.Subscription[:])
	c.Attribute = topicAttributeFields(f, c.Attribute)
	c.Reset = f.bool(c.Reset)
	return c
}

// Commands about messages and accounts.

func publishBatchFields(f *fields, c sns.PublishBatch) sns.PublishBatch {
	c.Topic = topicKeyFields(f, c.Topic)
	c.Entries = list(f, c.Entries, maxBatchEntries, publishEntryFields)
	c.Single = f.bool(c.Single)
	return c
}

func publishEntryFields(f *fields, e sns.PublishEntry) sns.PublishEntry {
	f.fixed(e.MessageID[:])
	e.Size = f.int(e.Size)
	e.GroupID = f.name(e.GroupID)
	e.DeduplicationID = f.str(e.DeduplicationID)
	if f.bool(e.SHA256 != [32]byte{}) {
		f.fixed(e.SHA256[:])
	}
	return e
}

func setSMSAttributesFields(f *fields, c sns.SetSMSAttributes) sns.SetSMSAttributes {
	c.Account = f.name(c.Account)
	c.Attributes = topicAttributesFields(f, c.Attributes)
	return c
}

func getSMSAttributesFields(f *fields, c sns.GetSMSAttributes) sns.GetSMSAttributes {
	c.Account = f.name(c.Account)
	return c
}

// Results.

func topicDoneFields(_ *fields, r sns.Done) sns.Done { return r }

func listTopicsResultFields(f *fields, r sns.ListTopicsResult) sns.ListTopicsResult {
	r.Names = list(f, r.Names, maxPage, stringFields)
	r.More = f.bool(r.More)
	return r
}

func getTopicAttributesResultFields(f *fields, r sns.GetTopicAttributesResult) sns.GetTopicAttributesResult {
	r.Attributes = topicAttributesFields(f, r.Attributes)
	r.Confirmed = f.int(r.Confirmed)
	r.Pending = f.int(r.Pending)
	r.Deleted = f.int(r.Deleted)
	return r
}

func replaceTopicPolicyResultFields(f *fields, r sns.ReplaceTopicPolicyResult) sns.ReplaceTopicPolicyResult {
	r.Replaced = f.bool(r.Replaced)
	r.Policy = f.str(r.Policy)
	return r
}

func listTagsForResourceResultFields(f *fields, r sns.ListTagsForResourceResult) sns.ListTagsForResourceResult {
	r.Tags = list(f, r.Tags, maxTags, topicTagFields)
	return r
}

func getDataProtectionPolicyResultFields(f *fields, r sns.GetDataProtectionPolicyResult) sns.GetDataProtectionPolicyResult {
	r.Policy = f.str(r.Policy)
	return r
}

func subscribeResultFields(f *fields, r sns.SubscribeResult) sns.SubscribeResult {
	f.fixed(r.Subscription[:])
	r.Pending = f.bool(r.Pending)
	return r
}

func confirmSubscriptionResultFields(f *fields, r sns.ConfirmSubscriptionResult) sns.ConfirmSubscriptionResult {
	r.Topic = topicKeyFields(f, r.Topic)
	f.fixed(r.Subscription[:])
	return r
}

func listSubscriptionsResultFields(f *fields, r sns.ListSubscriptionsResult) sns.ListSubscriptionsResult {
	r.Subscriptions = list(f, r.Subscriptions, maxPage, listedSubscriptionFields)
	r.More = f.bool(r.More)
	return r
}

func listedSubscriptionFields(f *fields, s sns.ListedSubscription) sns.ListedSubscription {
	s.Topic = topicKeyFields(f, s.Topic)
	f.fixed(s.Subscription[:])
	s.Owner = f.name(s.Owner)
	s.Protocol = sns.Protocol(f.byte(byte(s.Protocol)))
	s.Endpoint = f.str(s.Endpoint)
	s.Pending = f.bool(s.Pending)
	return s
}

func getSubscriptionAttributesResultFields(f *fields, r sns.GetSubscriptionAttributesResult) sns.GetSubscriptionAttributesResult {
	r.ListedSubscription = listedSubscriptionFields(f, r.ListedSubscription)
	r.Principal = f.str(r.Principal)
	r.Authenticated = f.bool(r.Authenticated)
	r.Attributes = topicAttributesFields(f, r.Attributes)
	r.TopicPolicy = f.str(r.TopicPolicy)
	return r
}

func publishBatchResultFields(f *fields, r sns.PublishBatchResult) sns.PublishBatchResult {
	r.Entries = list(f, r.Entries, maxBatchEntries, publishResultFields)
	return r
}

func publishResultFields(f *fields, r sns.PublishResult) sns.PublishResult {
	f.fixed(r.MessageID[:])
	r.SequenceNumber = f.u64(r.SequenceNumber)
	r.Body = f.u64(r.Body)
	r.Copies = f.int(r.Copies)
	return r
}

func getSMSAttributesResultFields(f *fields, r sns.GetSMSAttributesResult) sns.GetSMSAttributesResult {
	r.Attributes = topicAttributesFields(f, r.Attributes)
	return r
}
