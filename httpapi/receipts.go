package httpapi

import (
	"time"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

var (
	deleteEntries     = wire.List{JSON: "Entries", Query: "DeleteMessageBatchRequestEntry"}
	deletedEntries    = wire.List{JSON: "Successful", Query: "DeleteMessageBatchResultEntry"}
	visibilityEntries = wire.List{JSON: "Entries", Query: "ChangeMessageVisibilityBatchRequestEntry"}
	changedEntries    = wire.List{JSON: "Successful", Query: "ChangeMessageVisibilityBatchResultEntry"}
)

const maxVisibility = int64(sqs.MaxVisibilityTimeout / time.Second)

// parseHandle checks a receipt handle.
func (r *request) parseHandle(handle string) (sqs.Receipt, *sqs.Error) {
	if handle == "" {
		return sqs.Receipt{}, sqs.MissingParameterError("ReceiptHandle")
	}
	receipt, ok := r.server.broker.ParseHandle(handle)
	if !ok {
		return receipt, invalidHandle(handle)
	}
	return receipt, nil
}

func deleteMessage(r *request) error {
	queue := r.queue()
	handle, _ := r.in.Text("ReceiptHandle")
	if err := r.check(queue); err != nil {
		return err
	}
	receipt, invalid := r.parseHandle(handle)
	if invalid != nil {
		return r.invalid(queue, invalid)
	}
	return r.settle(sqs.DeleteMessageBatch{Queue: queue, Receipts: []sqs.Receipt{receipt}}, handle)
}

func changeMessageVisibility(r *request) error {
	queue := r.queue()
	handle, _ := r.in.Text("ReceiptHandle")
	timeout, given := r.in.Int("VisibilityTimeout")
	if err := r.check(queue); err != nil {
		return err
	}
	receipt, invalid := r.parseHandle(handle)
	switch {
	case handle == "":
	case !given:
		invalid = sqs.MissingParameterError("VisibilityTimeout")
	case timeout < 0 || timeout > maxVisibility:
		invalid = sqs.ValidateRange("VisibilityTimeout", timeout, 0, maxVisibility, "Must be between 0 and 43200.")
	}
	if invalid != nil {
		return r.invalid(queue, invalid)
	}
	entry := sqs.VisibilityEntry{Receipt: receipt, Timeout: time.Duration(timeout) * time.Second}
	return r.settle(sqs.ChangeMessageVisibilityBatch{Queue: queue, Entries: []sqs.VisibilityEntry{entry}}, handle)
}

// settle carries out a command about one handle.
func (r *request) settle(c sqs.Command, handle string) error {
	result, err := ask[sqs.BatchResult](r, c)
	if err != nil {
		return err
	}
	if refused := result.Errors[0]; refused != nil {
		return withHandle(refused, handle)
	}
	return nil
}

func deleteMessageBatch(r *request) error {
	queue := r.queue()
	b := r.readBatch(deleteEntries)
	handles := readHandles(&b)
	if err := r.check(queue); err != nil {
		return err
	}
	if err := r.validateBatch(queue, &b); err != nil {
		return err
	}
	c := sqs.DeleteMessageBatch{Queue: queue}
	for i, handle := range handles {
		receipt, err := r.parseHandle(handle)
		if b.errors[i] = err; err == nil {
			c.Receipts = append(c.Receipts, receipt)
		}
	}
	return r.settleBatch(&b, c, len(c.Receipts), handles, deletedEntries)
}

func readHandles(b *batch) []string {
	handles := make([]string, len(b.entries))
	for i, in := range b.entries {
		handles[i], _ = in.Text("ReceiptHandle")
	}
	return handles
}

func changeMessageVisibilityBatch(r *request) error {
	queue := r.queue()
	b := r.readBatch(visibilityEntries)
	handles := readHandles(&b)
	timeouts := make([]int64, len(b.entries))
	given := make([]bool, len(b.entries))
	for i, in := range b.entries {
		timeouts[i], given[i] = in.Int("VisibilityTimeout")
	}
	if err := r.check(queue); err != nil {
		return err
	}
	if err := r.validateBatch(queue, &b); err != nil {
		return err
	}
	c := sqs.ChangeMessageVisibilityBatch{Queue: queue}
	for i, handle := range handles {
		receipt, err := r.parseHandle(handle)
		switch {
		case handle == "":
		case !given[i]:
			err = b.missing(i, "VisibilityTimeout")
		default:
			if outside := sqs.ValidateRange("VisibilityTimeout", timeouts[i], 0, maxVisibility,
				"VisibilityTimeout must be an integer between 0 and 43200."); outside != nil {
				err = outside
			}
		}
		if b.errors[i] = err; err == nil {
			c.Entries = append(c.Entries, sqs.VisibilityEntry{Receipt: receipt, Timeout: time.Duration(timeouts[i]) * time.Second})
		}
	}
	return r.settleBatch(&b, c, len(c.Entries), handles, changedEntries)
}

// settleBatch carries out a command about the handles that were right, count of
// them, and answers for all.
func (r *request) settleBatch(b *batch, c sqs.Command, count int, handles []string, successful wire.List) error {
	if count == 0 {
		return r.answerFailed(c.Target(), b)
	}
	result, err := ask[sqs.BatchResult](r, c)
	if err != nil {
		return err
	}
	b.spread(len(result.Errors), func(i, n int) { b.errors[i] = withHandle(sqs.AsBatchEntry(result.Errors[n]), handles[i]) })
	r.writeBatch(b, successful, nil)
	return nil
}
