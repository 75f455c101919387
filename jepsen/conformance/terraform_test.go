package conformance

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The calls of the Terraform provider for AWS, in its order: create, read back
// until all that was set is there, read; set what has changed, read back; delete,
// read until the queue is gone. A read-back that does not succeed at once hangs an
// apply for minutes, so here each must succeed at the first try.

// stack is what a configuration declares: aws_sqs_queue twice, with tags, and of the
// one queue aws_sqs_queue_policy and aws_sqs_queue_redrive_policy, of the other
// aws_sqs_queue_redrive_allow_policy.
type stack struct {
	*scene
	queue, dead resource
}

// resource is one queue: what the configuration says, and where it is.
type resource struct {
	name       string
	attributes map[string]string // of aws_sqs_queue
	extras     map[string]string // of resources of their own, "" for none
	tags       map[string]string
	url        string
}

// differs returns the names of the attributes that a plan would change. Documents
// are compared by meaning, as the provider does.
func (r *resource) differs(got map[string]string) []string {
	var names []string
	for name, want := range r.all() {
		if !sameDocument(got[name], want) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (r *resource) all() map[string]string {
	all := maps.Clone(r.attributes)
	maps.Copy(all, r.extras)
	return all
}

func sameDocument(a, b string) bool {
	var left, right any
	if json.Unmarshal([]byte(a), &left) != nil || json.Unmarshal([]byte(b), &right) != nil {
		return a == b
	}
	return reflect.DeepEqual(left, right)
}

// apply makes the resource what the configuration says.
func (s *stack) apply(r *resource) {
	s.Helper()
	if r.url == "" {
		members := in{"QueueName": r.name, "Attributes": r.attributes}
		if len(r.tags) > 0 {
			members["tags"] = r.tags
		}
		r.url = s.ok("CreateQueue", members).text("QueueUrl")
		s.readBack(r, r.attributes)
	} else if changed := s.changes(r, r.attributes); len(changed) > 0 {
		s.ok("SetQueueAttributes", in{"QueueUrl": r.url, "Attributes": changed})
		s.readBack(r, changed)
	}
	for name, value := range s.changes(r, r.extras) { // each is a resource of its own
		s.ok("SetQueueAttributes", in{"QueueUrl": r.url, "Attributes": map[string]string{name: value}})
		s.readBack(r, map[string]string{name: value})
	}
	s.applyTags(r)
}

// changes are those of the attributes that are not yet as they should be.
func (s *stack) changes(r *resource, wanted map[string]string) map[string]string {
	s.Helper()
	changed := map[string]string{}
	got := s.attributes(r.url, "All")
	for name, want := range wanted {
		if !sameDocument(got[name], want) {
			changed[name] = want
		}
	}
	return changed
}

func (s *stack) readBack(r *resource, set map[string]string) {
	s.Helper()
	for name, left := range s.changes(r, set) {
		s.Fatalf("%s of %s: read back %q, want %q", name, r.name, s.attributes(r.url, "All")[name], left)
	}
}

func (s *stack) applyTags(r *resource) {
	s.Helper()
	var gone []string
	got := s.tags(r)
	for key, value := range got {
		if want, kept := r.tags[key]; !kept || want != value {
			gone = append(gone, key)
		}
	}
	if len(gone) > 0 {
		s.ok("UntagQueue", in{"QueueUrl": r.url, "TagKeys": gone})
	}
	if len(r.tags) > 0 {
		s.ok("TagQueue", in{"QueueUrl": r.url, "Tags": r.tags})
	}
}

func (s *stack) tags(r *resource) map[string]string {
	s.Helper()
	tags := map[string]string{}
	out := s.ok("ListQueueTags", in{"QueueUrl": r.url})
	for _, key := range out.names("Tags") {
		tags[key] = out.text("Tags", key)
	}
	return tags
}

// plan refreshes both queues and returns what an apply would change.
func (s *stack) plan() []string {
	s.Helper()
	var changes []string
	for _, r := range []*resource{&s.dead, &s.queue} {
		for _, name := range r.differs(s.attributes(r.url, "All")) {
			changes = append(changes, queueKind(r.name)+"."+name)
		}
		if !maps.Equal(s.tags(r), r.tags) {
			changes = append(changes, queueKind(r.name)+".tags")
		}
	}
	return changes
}

func queueKind(name string) string {
	if strings.HasPrefix(name, "dead-") {
		return "dead"
	}
	return "queue"
}

// destroy takes off what is of its own first, then deletes the queue.
func (s *stack) destroy(r *resource) {
	s.Helper()
	for name := range r.extras {
		s.ok("SetQueueAttributes", in{"QueueUrl": r.url, "Attributes": map[string]string{name: ""}})
		s.readBack(r, map[string]string{name: ""})
	}
	s.ok("DeleteQueue", in{"QueueUrl": r.url})
	s.refused("GetQueueAttributes", in{"QueueUrl": r.url, "AttributeNames": []string{"All"}}, fails(noSuchQueue))
	r.url = ""
}

func (s *stack) applyAll() {
	s.Helper()
	s.apply(&s.dead)
	s.queue.extras["RedrivePolicy"] = redrive(s.arn(s.dead.url), "4")
	s.apply(&s.queue)
	s.dead.extras["RedriveAllowPolicy"] = `{"sourceQueueArns":["` + s.arn(s.queue.url) + `"],"redrivePermission":"byQueue"}`
	s.queue.extras["Policy"] = `{"Version":"2012-10-17","Statement":[{"Sid":"first","Effect":"Allow","Principal":"*",` +
		`"Action":"sqs:SendMessage","Resource":"` + s.arn(s.queue.url) + `"}]}`
	s.apply(&s.dead)
	s.apply(&s.queue)
}

func (s *stack) planIs(want ...string) {
	s.Helper()
	if got := s.plan(); !slices.Equal(got, want) {
		s.Fatalf("plan: got %v, want %v", got, want)
	}
}

// newStack is a configuration with names of its own.
func newStack(s *scene, suffix string, attributes map[string]string) *stack {
	base := s.name()
	return &stack{
		scene: s,
		dead: resource{
			name: "dead-" + base + suffix, attributes: maps.Clone(attributes), extras: map[string]string{}, tags: map[string]string{},
		},
		queue: resource{
			name: base + suffix, extras: map[string]string{},
			attributes: map[string]string{
				"MaximumMessageSize": "2048", "MessageRetentionPeriod": "86400",
				"ReceiveMessageWaitTimeSeconds": "10", "SqsManagedSseEnabled": "true",
			},
		},
	}
}

func TestTerraform(t *testing.T) {
	standard := map[string]string{"MessageRetentionPeriod": "1209600"}
	fifo := map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
	play(t, []script{
		{id: "standard", title: "apply, plan, change, destroy, apply again", play: func(s *scene) { newStack(s, "", standard).live() }},
		{id: "fifo", title: "the same with FIFO queues", play: func(s *scene) {
			st := newStack(s, ".fifo", fifo)
			maps.Copy(st.queue.attributes, fifo)
			maps.Copy(st.queue.attributes, map[string]string{"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"})
			st.live()
		}},
	})
}

// live has a stack's life twice.
func (s *stack) live() {
	s.Helper()
	for range 2 {
		s.queue.attributes["VisibilityTimeout"], s.queue.attributes["DelaySeconds"] = "45", "90"
		s.queue.tags = map[string]string{"Team": "orders", "Empty": ""}
		s.applyAll()
		s.planIs()
		s.queue.attributes["VisibilityTimeout"] = "50"
		s.queue.attributes["DelaySeconds"] = "0"
		s.queue.extras["RedrivePolicy"] = redrive(s.arn(s.dead.url), "5")
		s.queue.tags = map[string]string{"Team": "billing"}
		s.planIs("queue.DelaySeconds", "queue.RedrivePolicy", "queue.VisibilityTimeout", "queue.tags")
		s.apply(&s.queue)
		s.planIs()
		s.destroy(&s.queue)
		s.destroy(&s.dead)
	}
}
