package jepsen_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

const fanOutQueues = 5

// fanOutKills is how often the node is killed.
func fanOutKills() int {
	switch {
	case *long:
		return 50
	case raceEnabled || testing.Short():
		return 4
	}
	return 12
}

// A publish and its copies are one entry of the log: after a kill all queues have a
// message or none has it, those whose publish was answered have it, and nothing is
// there twice.
func TestKillDuringPublish(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	node := startNode(t, "--test-mode", "--test-snapshot-entries", "300")
	topic := makeFanOut(t, node)

	var answered sync.Map
	ctx, cancel := context.WithCancel(t.Context())
	var publishers sync.WaitGroup
	for p := range 4 {
		publishers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprintf("%d-%d", p, i)
				if _, err := query(node, url.Values{"Action": {"Publish"}, "TopicArn": {topic}, "Message": {text}}); err == nil {
					answered.Store(text, true)
				} else {
					time.Sleep(5 * time.Millisecond) // the node is down
				}
			}
		})
	}
	for range fanOutKills() {
		time.Sleep(100*time.Millisecond + time.Duration(random.Int64N(int64(900*time.Millisecond))))
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
		restart(t, node)
	}
	cancel()
	publishers.Wait()
	if err := node.Kill(); err != nil { // decides what was under way
		t.Fatal(err)
	}
	restart(t, node)
	checkFanOut(t, node, &answered)
}

// makeFanOut makes a topic with queues, and returns its ARN.
func makeFanOut(t *testing.T, node *fault.Node) (topic string) {
	t.Helper()
	must := func(values url.Values) {
		t.Helper()
		if _, err := query(node, values); err != nil {
			t.Fatal(err)
		}
	}
	must(url.Values{"Action": {"CreateTopic"}, "Name": {"t"}})
	const account = "000000000000"
	topic = "arn:aws:sns:us-east-1:" + account + ":t"
	for i := range fanOutQueues {
		name := fmt.Sprint("q", i)
		if _, err := sqsCall(node, "CreateQueue", map[string]any{"QueueName": name}); err != nil {
			t.Fatal(err)
		}
		must(url.Values{
			"Action": {"Subscribe"}, "TopicArn": {topic}, "Protocol": {"sqs"}, "Endpoint": {"arn:aws:sqs:us-east-1:" + account + ":" + name},
			"Attributes.entry.1.key": {"RawMessageDelivery"}, "Attributes.entry.1.value": {"true"},
		})
	}
	return topic
}

func checkFanOut(t *testing.T, node *fault.Node, answered *sync.Map) {
	t.Helper()
	found := map[string]int{}
	for i := range fanOutQueues {
		seen := map[string]bool{}
		for _, text := range drainQueue(t, node, fmt.Sprint("q", i)) {
			if seen[text] {
				t.Errorf("q%d has %s twice", i, text)
			}
			seen[text] = true
			found[text]++
		}
	}
	for text, queues := range found {
		if queues != fanOutQueues {
			t.Errorf("%s is in %d of %d queues", text, queues, fanOutQueues)
		}
	}
	n := 0
	answered.Range(func(text, _ any) bool {
		n++
		if found[text.(string)] == 0 {
			t.Errorf("%s was answered, and is nowhere", text)
		}
		return true
	})
	t.Logf("%d publishes answered, %d found", n, len(found))
	if n < 20 {
		t.Errorf("got %d answered publishes, which prove nothing", n)
	}
}

// drainQueue receives all messages of a queue.
func drainQueue(t *testing.T, node *fault.Node, name string) (texts []string) {
	t.Helper()
	for {
		answer, err := sqsCall(node, "ReceiveMessage", map[string]any{"QueueUrl": name, "MaxNumberOfMessages": 10, "VisibilityTimeout": 3600})
		if err != nil {
			t.Fatal(err)
		}
		var received struct{ Messages []struct{ Body string } }
		if err := json.Unmarshal(answer, &received); err != nil {
			t.Fatal(err)
		}
		if len(received.Messages) == 0 {
			return texts
		}
		for _, m := range received.Messages {
			texts = append(texts, m.Body)
		}
	}
}

// query calls an action of SNS.
func query(node *fault.Node, values url.Values) ([]byte, error) {
	values.Set("Version", "2010-03-31")
	return call(node, "application/x-www-form-urlencoded", "", []byte(values.Encode()))
}

// sqsCall calls an action of SQS.
func sqsCall(node *fault.Node, action string, input map[string]any) ([]byte, error) {
	body, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	return call(node, "application/x-amz-json-1.0", "AmazonSQS."+action, body)
}

func call(node *fault.Node, contentType, target string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(http.MethodPost, node.Endpoint(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/sns/aws4_request, SignedHeaders=host, Signature=0")
	if target != "" {
		request.Header.Set("X-Amz-Target", target)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(answer)))
	}
	return answer, err
}
