package httpapi

import (
	"fmt"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

var failedEntries = wire.List{JSON: "Failed", Query: "BatchResultErrorEntry"}

// batch is what the four batch actions have in common: entries with an id each,
// of which each one succeeds or fails by itself.
type batch struct {
	list    wire.List
	given   bool
	entries []wire.Input
	ids     []string
	noID    int          // index of the first entry without an id; negative if there is none
	errors  []*sqs.Error // of each entry; nil is success
}

// readBatch reads the entries and their ids.
func (r *request) readBatch(list wire.List) batch {
	b := batch{list: list, noID: -1}
	b.entries, b.given = r.in.Structs(list)
	b.ids = make([]string, len(b.entries))
	b.errors = make([]*sqs.Error, len(b.entries))
	for i, in := range b.entries {
		id, ok := in.Text("Id")
		if !ok && b.noID < 0 {
			b.noID = i
		}
		b.ids[i] = id
	}
	return b
}

// validateBatch checks what fails a batch as a whole, in the order of AWS.
func (r *request) validateBatch(queue sqs.QueueKey, b *batch) error {
	err := b.validate(r.protocol)
	if err == nil {
		return nil
	}
	return r.invalid(queue, err)
}

// validate knows no missing list in Query, where no entries are an empty list (so
// AWS answered SDKs that spoke Query, aws-sdk-php issue 630).
func (b *batch) validate(p protocol) *sqs.Error {
	if !b.given && p == jsonProtocol {
		return sqs.MissingParameterError(b.list.JSON)
	}
	if err := sqs.ValidateBatchCount(b.list.Query, len(b.entries)); err != nil {
		return err
	}
	if b.noID >= 0 {
		return b.missing(b.noID, "Id")
	}
	return sqs.ValidateBatchIDs(b.ids)
}

// missing is the error of the entry at index i without a member.
func (b *batch) missing(i int, member string) *sqs.Error {
	return sqs.MissingParameterError(fmt.Sprintf("%s.%d.%s", b.list.Query, i+1, member))
}

// spread calls each with the index of every entry that has not failed yet and
// the number of its result, of which there must be so many. It returns the
// numbers by index.
func (b *batch) spread(results int, each func(i, n int)) []int {
	numbers := make([]int, len(b.entries))
	n := 0
	for i := range b.entries {
		if b.errors[i] != nil {
			continue
		}
		numbers[i] = n
		each(i, n)
		n++
	}
	if n != results {
		panic(fmt.Sprintf("httpapi: %d results for %d entries", results, n))
	}
	return numbers
}

// answerFailed answers a batch of which no entry came as far as the state,
// which must then be asked whether there is such a queue.
func (r *request) answerFailed(queue sqs.QueueKey, b *batch) error {
	if _, err := r.do(sqs.GetQueueUrl{Queue: queue}); err != nil {
		return err
	}
	r.writeBatch(b, wire.List{}, nil)
	return nil
}

// writeBatch answers a batch: the entries that succeeded and those that failed,
// each in the order of the request. more, if there is one, adds to the entry at
// an index.
func (r *request) writeBatch(b *batch, successful wire.List, more func(i int)) {
	failures := 0
	for _, err := range b.errors {
		if err != nil {
			failures++
		}
	}
	if failures < len(b.entries) {
		r.out.OpenList(successful)
		for i, id := range b.ids {
			if b.errors[i] != nil {
				continue
			}
			r.out.OpenStruct(successful)
			r.out.Text("Id", id)
			if more != nil {
				more(i)
			}
			r.out.CloseStruct(successful)
		}
		r.out.CloseList(successful)
	}
	if failures > 0 {
		r.writeFailures(b)
	}
}

func (r *request) writeFailures(b *batch) {
	r.out.OpenList(failedEntries)
	for i, err := range b.errors {
		if err == nil {
			continue
		}
		shape := shapeOf(err.Code)
		r.out.OpenStruct(failedEntries)
		r.out.Text("Id", b.ids[i])
		r.out.Text("Code", shape.query)
		r.out.Text("Message", bounded(err.Message))
		r.out.Bool("SenderFault", shape.status < 500)
		r.out.CloseStruct(failedEntries)
	}
	r.out.CloseList(failedEntries)
}
