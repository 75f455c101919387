package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// TestKindNumbers holds the numbers that are on disks. Lines may be added to
// it, never changed.
func TestKindNumbers(t *testing.T) {
	wantCommands := []string{
		"1 SendMessageBatch", "2 ReceiveMessage", "3 DeleteMessageBatch", "4 ChangeMessageVisibilityBatch",
		"5 Pulse", "30 PublishBatch", "6 GetQueueUrl", "7 GetQueueAttributes", "8 SetQueueAttributes", "9 CreateQueue",
		"10 DeleteQueue", "11 PurgeQueue", "12 ListQueues", "13 ListDeadLetterSourceQueues",
		"14 ListQueueTags", "15 TagQueue", "16 UntagQueue",
		"17 StartMessageMoveTask", "18 CancelMessageMoveTask", "19 ListMessageMoveTasks", "20 ReplacePolicy",
		"21 RedriveMessage", "22 OpenSession", "23 MarkMessageDamaged",
		"31 CreateTopic", "32 DeleteTopic", "33 ListTopics", "34 GetTopicAttributes", "35 SetTopicAttributes",
		"36 ReplaceTopicPolicy", "37 TagResource", "38 UntagResource", "39 ListTagsForResource",
		"40 PutDataProtectionPolicy", "41 GetDataProtectionPolicy", "42 Subscribe", "43 ConfirmSubscription",
		"44 Unsubscribe", "45 ListSubscriptions", "46 ListSubscriptionsByTopic", "47 GetSubscriptionAttributes",
		"48 SetSubscriptionAttributes", "49 SetSMSAttributes", "50 GetSMSAttributes",
		"60 AddSigningKey",
		"128 Form", "129 SetSetting",
	}
	wantResults := []string{
		"1 SendMessageBatchResult", "2 ReceiveMessageResult", "3 BatchResult", "4 Done",
		"5 GetQueueAttributesResult", "6 ListQueuesResult", "7 ListDeadLetterSourceQueuesResult",
		"8 ListQueueTagsResult",
		"9 CancelMessageMoveTaskResult", "10 ListMessageMoveTasksResult", "11 ReplacePolicyResult",
		"12 RedriveMessageResult",
		"20 PublishBatchResult", "21 TopicDone", "22 ListTopicsResult", "23 GetTopicAttributesResult",
		"24 ReplaceTopicPolicyResult", "25 ListTagsForResourceResult", "26 GetDataProtectionPolicyResult",
		"27 SubscribeResult", "28 ConfirmSubscriptionResult", "29 ListSubscriptionsResult",
		"30 GetSubscriptionAttributesResult", "31 GetSMSAttributesResult",
	}
	if got := rows(commandKinds[:]); !slices.Equal(got, wantCommands) {
		t.Errorf("commands: got %q, want %q", got, wantCommands)
	}
	if got := rows(resultKinds[:]); !slices.Equal(got, wantResults) {
		t.Errorf("results: got %q, want %q", got, wantResults)
	}
}

func rows[I any](kinds []kind[I]) []string {
	var list []string
	for _, k := range kinds {
		list = append(list, fmt.Sprint(k.number, " ", k.name))
	}
	return list
}

// TestEveryCommandHasAKind finds the types of the cores that have the marker
// method of a command or a result.
func TestEveryCommandHasAKind(t *testing.T) {
	for _, core := range []string{"sqs", "sns"} {
		marked := map[string][]string{}
		for _, d := range declarations(t, "../"+core) {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv != nil && strings.HasPrefix(f.Name.Name, core) {
				receiver := f.Recv.List[0].Type.(*ast.Ident).Name
				marked[f.Name.Name] = append(marked[f.Name.Name], receiver)
			}
		}
		for marker, names := range map[string][]string{"Command": nameList(commandKinds[:]), "Result": nameList(resultKinds[:])} {
			if len(marked[core+marker]) == 0 {
				t.Errorf("no type has the method %s", core+marker)
			}
			for _, name := range marked[core+marker] {
				if core == "sns" && name == "Done" {
					name = "TopicDone"
				}
				if !slices.Contains(names, name) {
					t.Errorf("%s.%s has no kind", core, name)
				}
			}
		}
	}
}

func nameList[I any](kinds []kind[I]) []string {
	var list []string
	for _, k := range kinds {
		list = append(list, k.name)
	}
	return list
}

func declarations(t *testing.T, dir string) []ast.Decl {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var decls []ast.Decl
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, f.Decls...)
	}
	return decls
}

// filledCommands has one command of each kind, with a value in every field.
func filledCommands() []Command {
	return []Command{
		filled[sqs.CreateQueue](), filled[sqs.DeleteQueue](), filled[sqs.GetQueueUrl](),
		filled[sqs.ListQueues](), filled[sqs.GetQueueAttributes](), filled[sqs.SetQueueAttributes](),
		filled[sqs.TagQueue](), filled[sqs.UntagQueue](), filled[sqs.ListQueueTags](),
		filled[sqs.ListDeadLetterSourceQueues](), filled[sqs.PurgeQueue](), filled[sqs.SendMessageBatch](),
		filled[sqs.ReceiveMessage](), filled[sqs.DeleteMessageBatch](), filled[sqs.ChangeMessageVisibilityBatch](),
		filled[sqs.StartMessageMoveTask](), filled[sqs.CancelMessageMoveTask](), filled[sqs.ListMessageMoveTasks](),
		filled[sqs.ReplacePolicy](), filled[sqs.RedriveMessage](), filled[sqs.MarkMessageDamaged](),
		filled[Form](), filled[OpenSession](), filled[Pulse](), filled[SetSetting](),
		filledPublish(), filled[sns.CreateTopic](), filled[sns.DeleteTopic](), filled[sns.ListTopics](),
		filled[sns.GetTopicAttributes](), filled[sns.SetTopicAttributes](), filled[sns.ReplaceTopicPolicy](),
		filled[sns.TagResource](), filled[sns.UntagResource](), filled[sns.ListTagsForResource](),
		filled[sns.PutDataProtectionPolicy](), filled[sns.GetDataProtectionPolicy](), filled[sns.Subscribe](),
		filled[sns.ConfirmSubscription](), filled[sns.Unsubscribe](), filled[sns.ListSubscriptions](),
		filled[sns.ListSubscriptionsByTopic](), filled[sns.GetSubscriptionAttributes](),
		filled[sns.SetSubscriptionAttributes](), filled[sns.SetSMSAttributes](), filled[AddSigningKey](), filled[sns.GetSMSAttributes](),
	}
}

// filledPublish is without contents, which travel beside it.
func filledPublish() sns.PublishBatch {
	c := filled[sns.PublishBatch]()
	for i := range c.Entries {
		c.Entries[i].Content = nil
	}
	return c
}

func filledResults() []Result {
	return []Result{
		filled[sqs.Done](), filled[sqs.ListQueuesResult](), filled[sqs.GetQueueAttributesResult](),
		filled[sqs.ListQueueTagsResult](), filled[sqs.ListDeadLetterSourceQueuesResult](),
		filled[sqs.SendMessageBatchResult](), filled[sqs.ReceiveMessageResult](), filled[sqs.BatchResult](),
		filled[sqs.CancelMessageMoveTaskResult](), filled[sqs.ListMessageMoveTasksResult](), filled[sqs.ReplacePolicyResult](),
		filled[sqs.RedriveMessageResult](),
		filled[sns.PublishBatchResult](), filled[sns.Done](), filled[sns.ListTopicsResult](),
		filled[sns.GetTopicAttributesResult](), filled[sns.ReplaceTopicPolicyResult](),
		filled[sns.ListTagsForResourceResult](), filled[sns.GetDataProtectionPolicyResult](),
		filled[sns.SubscribeResult](), filled[sns.ConfirmSubscriptionResult](), filled[sns.ListSubscriptionsResult](),
		filled[sns.GetSubscriptionAttributesResult](), filled[sns.GetSMSAttributesResult](),
	}
}

// filled is a value of type T without a zero anywhere in its exported fields.
func filled[T any]() T {
	var v T
	n := uint64(200) // numbers of two bytes as varints
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

func fill(v reflect.Value, n *uint64) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(*n%255 + 1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(*n)
	case reflect.Int, reflect.Int64:
		v.SetInt(-int64(*n))
	default:
		panic("fill: " + v.Kind().String())
	}
}

func bodiesFor(c Command) [][]byte {
	var bodies [][]byte
	for i := range bodiesOf(c) {
		bodies = append(bodies, fmt.Append(nil, "body ", i))
	}
	return bodies
}

func TestCommandRoundTrip(t *testing.T) {
	commands := filledCommands()
	if len(commands) != len(commandKinds) {
		t.Errorf("%d commands are tried, %d have a kind", len(commands), len(commandKinds))
	}
	zeros := []Command{sqs.CreateQueue{}, sqs.SendMessageBatch{}, sqs.ReceiveMessage{VisibilityTimeout: sqs.QueueDefault}, Form{}}
	for _, want := range append(commands, zeros...) {
		wantBodies := bodiesFor(want)
		b, err := AppendCommand([]byte("before"), want, wantBodies)
		if err != nil {
			t.Errorf("%T: %v", want, err)
			continue
		}
		got, gotBodies, err := DecodeCommand(bytes.TrimPrefix(b, []byte("before")))
		if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotBodies, wantBodies) {
			t.Errorf("got %#v %q %v, want %#v %q", got, gotBodies, err, want, wantBodies)
		}
	}
}

// TestManyTagKeys: a request may ask for the removal of more tags than a topic or a
// queue can have.
func TestManyTagKeys(t *testing.T) {
	keys := make([]string, 16_000) // about what a request can hold
	for _, c := range []Command{
		sns.UntagResource{Topic: sns.TopicKey{Account: "000000000000", Name: "orders"}, Keys: keys},
		sqs.UntagQueue{Queue: sqs.QueueKey{Account: "000000000000", Name: "orders"}, Keys: keys},
	} {
		if _, err := AppendCommand(nil, c, nil); err != nil {
			t.Errorf("%T: %v", c, err)
		}
	}
}

// TestCommandCutOff: no command ends before its end, and none goes on after it.
func TestCommandCutOff(t *testing.T) {
	for _, c := range filledCommands() {
		b, err := AppendCommand(nil, c, bodiesFor(c))
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(b) {
			if _, _, err := DecodeCommand(b[:n]); err == nil {
				t.Errorf("%T: %d of %d bytes were decoded", c, n, len(b))
			}
		}
		if _, _, err := DecodeCommand(append(b, 0)); !errors.Is(err, errTrailing) {
			t.Errorf("%T with a byte too many: got %v, want %v", c, err, errTrailing)
		}
	}
}

func TestResultRoundTrip(t *testing.T) {
	results := filledResults()
	if len(results) != len(resultKinds) {
		t.Errorf("%d results are tried, %d have a kind", len(results), len(resultKinds))
	}
	for _, want := range append(results, Result(sqs.BatchResult{Errors: []*sqs.Error{nil, {Code: sqs.OverLimit}}})) {
		k := findKind(resultKinds[:], want)
		f := fields{}
		k.write(&f, want)
		f.reading = true
		got := k.read(&f)
		if err := f.end(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v %v, want %#v", got, err, want)
		}
	}
}

func TestAppendCommandRefuses(t *testing.T) {
	eleven := sqs.SendMessageBatch{Entries: make([]sqs.SendEntry, 11)}
	cases := []struct {
		name    string
		command Command
		bodies  [][]byte
		want    error
	}{
		{"no command", "SendMessage", nil, errNotCommand},
		{"nothing", nil, nil, errNotCommand},
		{"pointer", &sqs.DeleteQueue{}, nil, errNotCommand},
		{"body missing", sqs.SendMessageBatch{Entries: make([]sqs.SendEntry, 2)}, make([][]byte, 1), errBodies},
		{"body too many", sqs.DeleteQueue{}, make([][]byte, 1), errBodies},
		{"batch of eleven", eleven, make([][]byte, 11), errCount},
	}
	for _, c := range cases {
		got, err := AppendCommand([]byte("before"), c.command, c.bodies)
		if !errors.Is(err, c.want) || string(got) != "before" {
			t.Errorf("%s: got %q %v, want %v", c.name, got, err, c.want)
		}
	}
}

func TestDecodeCommandOfUnknownKind(t *testing.T) {
	for _, b := range [][]byte{nil, {0}, {77}, {200, 1, 2}} {
		if _, _, err := DecodeCommand(b); !errors.Is(err, errKind) {
			t.Errorf("%v: got %v, want %v", b, err, errKind)
		}
	}
}

// TestBodiesAliasTheInput: the content of a message is not copied on its way
// from the log to Bodies.
func TestBodiesAliasTheInput(t *testing.T) {
	c := sqs.SendMessageBatch{Entries: make([]sqs.SendEntry, 1)}
	b, err := AppendCommand(nil, c, [][]byte{[]byte("body")})
	if err != nil {
		t.Fatal(err)
	}
	_, bodies, err := DecodeCommand(b)
	if err != nil {
		t.Fatal(err)
	}
	if &bodies[0][3] != &b[len(b)-1] {
		t.Error("got a copy")
	}
}

func TestCommandName(t *testing.T) {
	if got, want := CommandName(sqs.SendMessageBatch{}), "SendMessageBatch"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := CommandName(7); got != "" {
		t.Errorf("got %q, want none", got)
	}
}

// TestInternerTellsApart: strings that share a slot do not become each other.
func TestInternerTellsApart(t *testing.T) {
	var names interner
	for i := range 10_000 {
		want := fmt.Sprint("queue-", i)
		if got := names.string([]byte(want)); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	long := strings.Repeat("x", maxInterned+1)
	if got := names.string([]byte(long)); got != long {
		t.Errorf("got %q, want %q", got, long)
	}
}
