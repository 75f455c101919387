package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast.internal/httpapi"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// rivalBroker has somebody else change the policy of q before it is replaced, a
// number of times.
type rivalBroker struct {
	*stateBroker
	rivals int
}

func (b *rivalBroker) Do(ctx context.Context, c raftfsm.Command, bodies ...[]byte) (raftfsm.Outcome, error) {
	if _, ok := c.(sqs.ReplacePolicy); ok && b.rivals > 0 {
		b.rivals--
		policy := fmt.Sprintf(`{"Statement":[{"Sid":"rival%d","Effect":"Deny","Principal":"*","Action":"SQS:*"}]}`, b.rivals)
		set := sqs.SetQueueAttributes{
			Queue:      sqs.QueueKey{Account: "000000000000", Name: "q"},
			Attributes: []sqs.Attribute{{Name: sqs.Policy, Value: policy}},
		}
		if _, err := b.stateBroker.Do(ctx, set); err != nil {
			return raftfsm.Outcome{}, err
		}
	}
	return b.stateBroker.Do(ctx, c, bodies...)
}

// TestPermissionsAmongRivals: a permission goes into the policy that is there when
// it is added, whoever has changed it meanwhile.
func TestPermissionsAmongRivals(t *testing.T) {
	const add = `{"QueueUrl":"q","Label":"mine","AWSAccountIds":["111111111111"],"Actions":["SendMessage"]}`
	for rivals, want := range map[int]int{0: 200, 1: 200, 7: 200, 8: 403} {
		state := newStateBroker()
		e := serveBroker(t, state, &rivalBroker{stateBroker: state, rivals: rivals}, httpapi.Config{})
		e.json("CreateQueue", `{"QueueName":"q"}`)
		if r := e.json("AddPermission", add); r.status != want || want != 200 && !strings.Contains(r.body, "RequestThrottled") {
			t.Errorf("%d rivals: got %d %s, want %d", rivals, r.status, r.body, want)
		}
		got := e.json("GetQueueAttributes", `{"QueueUrl":"q","AttributeNames":["Policy"]}`).body
		if has := strings.Contains(got, `\"mine\"`); has != (want == 200) {
			t.Errorf("%d rivals: got %s", rivals, got)
		}
		if rivals > 0 && !strings.Contains(got, `\"rival0\"`) {
			t.Errorf("%d rivals: got %s, want that of the last rival as well", rivals, got)
		}
	}
}

// TestPolicyLimit: a permission that makes the policy too long is refused.
func TestPolicyLimit(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	long := `{"Id":"` + strings.Repeat("x", 8000) + `","Statement":{"Effect":"Deny","Principal":"*","Action":"SQS:*"}}`
	if r, _ := e.setAttribute(sqs.Policy, long); r.status != 200 {
		t.Fatalf("got %s", r.body)
	}
	r := e.json("AddPermission", `{"QueueUrl":"q","Label":"mine","AWSAccountIds":["111111111111"],"Actions":["SendMessage"]}`)
	if got := r.errorText(t); !strings.HasPrefix(got, "OverLimit: ") {
		t.Errorf("got %s, want OverLimit", got)
	}
}
