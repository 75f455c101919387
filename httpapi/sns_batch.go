package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sns"
)

var (
	publishEntries    = wire.List{Query: "PublishBatchRequestEntries", Member: "member"}
	successfulEntries = wire.List{Query: "Successful", Member: "member"}
	refusedEntries    = wire.List{Query: "Failed", Member: "member"}
)

func publishBatch(r *request) error {
	topic, err := r.topicParameter("TopicArn")
	if err != nil {
		return err
	}
	entries, _ := r.in.Structs(publishEntries)
	ids := make([]string, len(entries))
	drafts := make([]*draft, len(entries))
	var found violations
	for i, in := range entries {
		id, ok := in.Text("Id")
		path := fmt.Sprintf("publishBatchRequestEntries.%d.member.", i+1)
		if !ok {
			found.missing(path + "id")
		}
		ids[i] = id
		drafts[i] = r.readDraft(in, topic, path, &found)
	}
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	if err := found.err(); err != nil {
		return err
	}
	if refusal := validateEntryIDs(ids); refusal != nil {
		return refusal
	}
	for _, d := range drafts {
		if d.refusal != nil {
			return r.refuseTo(topic, d.refusal)
		}
	}
	return r.publishDrafts(topic, ids, drafts)
}

// validateEntryIDs checks what fails a batch before the topic is looked at (AWS
// recordings test_publish_batch_exceptions, test_publish_batch_invalid_entry_id).
func validateEntryIDs(ids []string) *sns.Error {
	switch {
	case len(ids) > sns.MaxBatchEntries:
		return &sns.Error{Code: sns.TooManyEntriesInBatchRequest, Message: "The batch request contains more entries than permissible."}
	case len(ids) == 0:
		return &sns.Error{Code: sns.EmptyBatchRequest, Message: "The batch request doesn't contain any entries."}
	}
	for i, id := range ids {
		switch {
		case slices.Contains(ids[:i], id):
			return &sns.Error{Code: sns.BatchEntryIDsNotDistinct, Message: "Two or more batch entries in the request have the same Id."}
		case id == "" || strings.ContainsFunc(id, func(c rune) bool { return !isNameRune(c) }):
			return &sns.Error{
				Code:    sns.InvalidBatchEntryID,
				Message: "The Id of a batch entry in the batch request contains an impermissible character: " + id,
			}
		case utf8.RuneCountInString(id) > sns.MaxBatchEntryID:
			return &sns.Error{Code: sns.InvalidBatchEntryID, Message: "The Id of a batch entry in the batch request is too long: " + id}
		}
	}
	return nil
}

// publishDrafts publishes those that have not failed, in one command.
func (r *request) publishDrafts(topic sns.TopicKey, ids []string, drafts []*draft) error {
	c := sns.PublishBatch{Topic: topic}
	var contents [][]byte
	var failed []*draft
	for _, d := range drafts {
		if d.failure != nil {
			failed = append(failed, d)
			continue
		}
		entry, content := d.finish(topic)
		c.Entries, contents = append(c.Entries, entry), append(contents, content)
	}
	if err := r.checkFailed(topic, failed); err != nil {
		return err
	}
	var done sns.PublishBatchResult
	if len(c.Entries) > 0 {
		var err error
		if done, err = inquire[sns.PublishBatchResult](r, c, contents...); err != nil {
			return err
		}
	}
	r.writeSuccessful(topic, ids, drafts, done.Entries)
	r.writeRefused(ids, drafts)
	return nil
}

// checkFailed checks, in those that have failed and that the state does not see, what
// fails the batch as a whole.
func (r *request) checkFailed(topic sns.TopicKey, failed []*draft) error {
	if len(failed) == 0 {
		return nil
	}
	found, err := inquire[sns.GetTopicAttributesResult](r, sns.GetTopicAttributes{Topic: topic})
	if err != nil {
		return err
	}
	contentBased := slices.Contains(found.Attributes, sns.Attribute{Name: sns.ContentBasedDeduplication, Value: "true"})
	for _, d := range failed {
		if refusal := sns.CheckIDs(topic, contentBased, d.message.GroupID, d.message.DeduplicationID); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (r *request) writeSuccessful(topic sns.TopicKey, ids []string, drafts []*draft, done []sns.PublishResult) {
	r.out.OpenList(successfulEntries)
	for i, d := range drafts {
		if d.failure != nil {
			continue
		}
		r.out.OpenStruct(successfulEntries)
		r.out.Text("Id", ids[i])
		r.writePublished(topic, &done[0])
		r.out.CloseStruct(successfulEntries)
		done = done[1:]
	}
	r.out.CloseList(successfulEntries)
}

func (r *request) writeRefused(ids []string, drafts []*draft) {
	r.out.OpenList(refusedEntries)
	for i, d := range drafts {
		if d.failure == nil {
			continue
		}
		r.out.OpenStruct(refusedEntries)
		r.out.Text("Id", ids[i])
		r.out.Text("Code", string(d.failure.Code))
		r.out.Text("Message", bounded(d.failure.Message))
		r.out.Bool("SenderFault", snsStatus(d.failure.Code) < 500)
		r.out.CloseStruct(refusedEntries)
	}
	r.out.CloseList(refusedEntries)
}
