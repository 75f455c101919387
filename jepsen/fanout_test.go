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
	"sync/atomic"
	"testing"
	"time"
)

const (
	fanOutQueues = 5
	fanOutLeast  = 20 // fewer answered publishes prove nothing
)

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
	random := rand.New(rand.NewPCG(newSeed(t), 2))
	node := startNode(t, "--test-mode", "--test-snapshot-entries", "300")
	b := caller{node.Endpoint(), http.DefaultClient}
	topic := makeFanOut(t, b, fanOutQueues)
	answered, stop := publishAlways(t, b, topic, 0)
	for i := 0; i < fanOutKills() || i < 4*fanOutKills() && count(answered) < fanOutLeast; i++ { // less happens on a slow machine
		time.Sleep(100*time.Millisecond + time.Duration(random.Int64N(int64(900*time.Millisecond))))
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
		restart(t, node)
	}
	stop()
	if err := node.Kill(); err != nil { // decides what was under way
		t.Fatal(err)
	}
	restart(t, node)
	checkFanOut(t, b, fanOutQueues, fanOutLeast, answered)
}

// publishAlways has four clients publish until stop is called, with a pause between
// two publishes, and returns the texts that were answered.
func publishAlways(t *testing.T, b caller, topic string, pause time.Duration) (answered *sync.Map, stop func()) {
	t.Helper()
	answered = &sync.Map{}
	ctx, cancel := context.WithCancel(t.Context())
	var publishers sync.WaitGroup
	for p := range 4 {
		publishers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprintf("%d-%d", p, i)
				if _, err := query(b, url.Values{"Action": {"Publish"}, "TopicArn": {topic}, "Message": {text}}); err == nil {
					answered.Store(text, true)
					time.Sleep(pause)
				} else {
					time.Sleep(5 * time.Millisecond) // the node is down
				}
			}
		})
	}
	return answered, func() {
		cancel()
		publishers.Wait()
	}
}

// count is the number of texts that were answered.
func count(answered *sync.Map) (n int) {
	answered.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// makeFanOut makes a topic with queues, and returns its ARN.
func makeFanOut(t *testing.T, b caller, queues int) (topic string) {
	t.Helper()
	if _, err := query(b, url.Values{"Action": {"CreateTopic"}, "Name": {"t"}}); err != nil {
		t.Fatal(err)
	}
	const account = "000000000000"
	topic = "arn:aws:sns:us-east-1:" + account + ":t"
	inParallel(t, queues, func(i int) error {
		name := fmt.Sprint("q", i)
		if _, err := sqsCall(b, "CreateQueue", map[string]any{"QueueName": name}); err != nil {
			return err
		}
		_, err := query(b, url.Values{
			"Action": {"Subscribe"}, "TopicArn": {topic}, "Protocol": {"sqs"}, "Endpoint": {"arn:aws:sqs:us-east-1:" + account + ":" + name},
			"Attributes.entry.1.key": {"RawMessageDelivery"}, "Attributes.entry.1.value": {"true"},
		})
		return err
	})
	return topic
}

// inParallel calls f for 0 to n-1, some at a time.
func inParallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var workers sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// checkFanOut checks that all queues have the same messages, each once, and among
// them those that were answered, of which there must be so many at least.
func checkFanOut(t *testing.T, b caller, queues, least int, answered *sync.Map) {
	t.Helper()
	var mu sync.Mutex
	found := map[string]int{}
	inParallel(t, queues, func(i int) error {
		texts, err := drainQueue(b, fmt.Sprint("q", i))
		mu.Lock()
		defer mu.Unlock()
		seen := map[string]bool{}
		for _, text := range texts {
			if seen[text] {
				t.Errorf("q%d has %s twice", i, text)
			}
			seen[text] = true
			found[text]++
		}
		return err
	})
	for text, n := range found {
		if n != queues {
			t.Errorf("%s is in %d of %d queues", text, n, queues)
		}
	}
	answered.Range(func(text, _ any) bool {
		if found[text.(string)] == 0 {
			t.Errorf("%s was answered, and is nowhere", text)
		}
		return true
	})
	n := count(answered)
	t.Logf("%d publishes answered, %d found", n, len(found))
	if n < least {
		t.Errorf("got %d answered publishes, which prove nothing", n)
	}
}

// drainQueue receives all messages of a queue.
func drainQueue(b caller, name string) (texts []string, err error) {
	for {
		answer, err := sqsCall(b, "ReceiveMessage", map[string]any{"QueueUrl": name, "MaxNumberOfMessages": 10, "VisibilityTimeout": 3600})
		if err != nil {
			return texts, err
		}
		var received struct{ Messages []struct{ Body string } }
		if err := json.Unmarshal(answer, &received); err != nil || len(received.Messages) == 0 {
			return texts, err
		}
		for _, m := range received.Messages {
			texts = append(texts, m.Body)
		}
	}
}

// caller is a broker that is asked for single actions.
type caller struct {
	endpoint string
	client   *http.Client
}

// query calls an action of SNS.
func query(b caller, values url.Values) ([]byte, error) {
	values.Set("Version", "2010-03-31")
	return b.call("application/x-www-form-urlencoded", "", []byte(values.Encode()))
}

// sqsCall calls an action of SQS.
func sqsCall(b caller, action string, input map[string]any) ([]byte, error) {
	body, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	return b.call("application/x-amz-json-1.0", "AmazonSQS."+action, body)
}

func (b caller) call(contentType, target string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(http.MethodPost, b.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/sns/aws4_request, SignedHeaders=host, Signature=0")
	if target != "" {
		request.Header.Set("X-Amz-Target", target)
	}
	response, err := b.client.Do(request)
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
