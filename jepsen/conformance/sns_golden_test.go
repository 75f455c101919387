package conformance

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"sync"
)

// snsRecordings are the answers of Amazon SNS, and of SQS about what it delivered:
// test name, step, answer as boto3 shows it.
var snsRecordings = sync.OnceValues(func() (map[string]recording, error) {
	text, err := os.ReadFile("testdata/recordings/test_sns.json")
	if err != nil {
		return nil, err
	}
	text = caller.ReplaceAll(text, []byte(":root")) // here everybody calls as the root of his account
	var all map[string]recording
	return all, json.Unmarshal(text, &all)
})

var caller = regexp.MustCompile(`:user/<resource:[0-9]+>`)

// snsGolden compares answers of both services with a recorded test.
type snsGolden struct {
	*golden
	stage *stage
}

// recorded is the recording of a test.
func (s *stage) recorded(name string) *snsGolden {
	s.Helper()
	all, err := snsRecordings()
	if err != nil {
		s.Fatal(err)
	}
	r, ok := all[name]
	if !ok {
		s.Fatalf("there is no recording of %s", name)
	}
	g := &golden{scene: s.scene, name: name, steps: maps.Clone(r.Content), compared: map[string]bool{}}
	s.Cleanup(g.finish)
	return &snsGolden{golden: g, stage: s}
}

// sns plays an action of SNS and compares its answer, which it returns.
func (g *snsGolden) sns(step, action string, members in) tree {
	g.Helper()
	a := g.stage.sns(action, members)
	g.is(step, a)
	return a.out
}

// received compares what a queue gives, and deletes it.
func (g *snsGolden) received(step, queueURL string, members in) {
	g.Helper()
	got := g.receivedAll(queueURL, 1, members)
	answer := map[string]any{"ResponseMetadata": map[string]any{"HTTPStatusCode": float64(200)}}
	if len(got) > 0 {
		answer["Messages"] = got
	}
	g.same(step, answer)
}

// messages compares n messages of a queue, of which the recording has no answer
// around them.
func (g *snsGolden) messages(step, queueURL string, n int, members in) {
	g.Helper()
	g.same(step, map[string]any{"Messages": g.receivedAll(queueURL, n, members)})
}

func (g *snsGolden) receivedAll(queueURL string, n int, members in) []any {
	g.Helper()
	var got []any
	for range 10 {
		messages := g.receive(queueURL, in{"MaxNumberOfMessages": 10, "VisibilityTimeout": 60}, members)
		for _, m := range messages {
			g.delete(queueURL, handle(m))
			got = append(got, map[string]any(m))
		}
		if len(got) >= n {
			break
		}
	}
	return got
}
