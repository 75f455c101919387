package raftfsm

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

func formedSettings() Settings {
	s := DefaultSettings()
	s.ClusterID = "c-1"
	s.HandleKeys = []HandleKey{testKey(1, 0)}
	return s
}

func named(s Settings, name string) string {
	for _, n := range s.List() {
		if n.Name == name {
			return n.Value
		}
	}
	return "no " + name
}

func TestSetSetting(t *testing.T) {
	cases := []struct{ name, value, want string }{
		{"account", "123456789012", "123456789012"},
		{"region", "eu-central-1", "eu-central-1"},
		{"public-url", "https://sqs.example.com:8443/base/", "https://sqs.example.com:8443/base"},
		{"public-url", "", ""},
		{"sns-cert-url", "https://sns.example.com", "https://sns.example.com"},
		{"sns-filter-limit", "200", "200"},
		{"queue-policies", "enforce", "enforce"},
		{"inflight-limit", "20", "20"},
		{"purge-wait", "0s", "0s"},
		{"purge-wait", "1m30s", "90s"},
		{"delete-wait", "1500ms", "1.5s"},
	}
	for _, c := range cases {
		s := formedSettings()
		if err := s.Set(c.name, c.value); err != nil {
			t.Errorf("%s %q: %v", c.name, c.value, err)
		}
		if got := named(s, c.name); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.name, c.value, got, c.want)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("%s %q: %v", c.name, c.value, err)
		}
	}
}

func TestSetSettingRefuses(t *testing.T) {
	cases := []struct{ name, value string }{
		{"account", "12345678901"},
		{"account", "12345678901x"},
		{"account", "12345x789012"},
		{"region", ""},
		{"region", "EU"},
		{"public-url", "sqs.example.com"},
		{"public-url", "https://"},
		{"public-url", "https:///path"},
		{"public-url", "https://host?x"},
		{"public-url", "https://ho st"},
		{"sns-cert-url", "host"},
		{"sns-url", ""},
		{"sns-url", "/"},
		{"sns-filter-limit", "-1"},
		{"queue-policies", "closed"},
		{"inflight-limit", "0"},
		{"inflight-limit", "1000001"},
		{"inflight-limit", "many"},
		{"purge-wait", "-1s"},
		{"purge-wait", "61m"},
		{"purge-wait", "60"},
		{"delete-wait", "1us"},
		{"test-dedup-window", "2s"}, // not in test mode
		{"cluster-id", "other"},
		{"test-mode", "true"},
		{"state-version", "2"},
		{"color", "red"},
	}
	for _, c := range cases {
		s := formedSettings()
		err := s.Set(c.name, c.value)
		refusal, ok := errors.AsType[*SettingError](err)
		if !ok || refusal.Name != c.name || refusal.Value != c.value || refusal.Reason == "" {
			t.Errorf("%s %q: got error %v", c.name, c.value, err)
		}
		if want := formedSettings(); named(s, c.name) != named(want, c.name) {
			t.Errorf("%s %q: it was refused, and set to %q", c.name, c.value, named(s, c.name))
		}
	}
}

func TestDedupWindowInTestMode(t *testing.T) {
	s := formedSettings()
	s.TestMode = true
	if err := s.Set("test-dedup-window", "2s"); err != nil || s.Rules.DedupWindow != 2*time.Second {
		t.Errorf("got %v, window %v", err, s.Rules.DedupWindow)
	}
}

func TestValidateSettings(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Settings)
	}{
		{"cluster-id", func(s *Settings) { s.ClusterID = "" }},
		{"account", func(s *Settings) { s.Account = "me" }},
		{"purge-wait", func(s *Settings) { s.Rules.PurgeWait = -1 }},
		{"test-dedup-window", func(s *Settings) { s.Rules.DedupWindow = time.Second }},
		{"state-version", func(s *Settings) { s.Version = StateVersion + 1 }},
		{"handle-keys", func(s *Settings) { s.HandleKeys = nil }},
		{"handle-keys", func(s *Settings) { s.HandleKeys = []HandleKey{testKey(1, 0), testKey(1, 5)} }},
		{"handle-keys", func(s *Settings) { s.HandleKeys = []HandleKey{testKey(1, 5), testKey(2, 0)} }},
	}
	for _, c := range cases {
		s := formedSettings()
		c.change(&s)
		err := s.Validate()
		if refusal, ok := errors.AsType[*SettingError](err); !ok || refusal.Name != c.name {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	s := formedSettings()
	if err := s.Validate(); err != nil {
		t.Errorf("the defaults with an id and a key: %v", err)
	}
}

// Redrive policies name queues with the region, in the words of their owners, and
// clients look for queues and topics in the account.
func TestPlaceIsFixedWhileThereAreQueues(t *testing.T) {
	m := newTestMachine(t)
	topic := sns.TopicKey{Account: testQueue("q").Account, Name: "topic"}
	regions, accounts := [2]string{"eu-central-1", "us-east-1"}, [2]string{"111111111111", "222222222222"}
	expect := func(name, value string, refused bool) {
		t.Helper()
		_, refusal := errors.AsType[*SettingError](m.do(SetSetting{Name: name, Value: value}).Err)
		if refusal != refused {
			t.Errorf("%s %s: refused %t, want %t", name, value, refusal, refused)
		}
		if s := m.Settings(); (name == "region" && s.Region == value || name == "account" && s.Account == value) == refused {
			t.Errorf("%s %s: refused %t, and the settings are %+v", name, value, refused, s)
		}
	}
	expect("region", regions[0], false)
	expect("account", accounts[0], false)
	m.must(sqs.CreateQueue{Queue: testQueue("q")})
	m.must(sns.CreateTopic{Topic: topic})
	expect("region", regions[1], true)
	expect("account", accounts[1], true)
	expect("region", regions[0], false) // no change
	expect("account", accounts[0], false)
	m.must(sqs.DeleteQueue{Queue: testQueue("q")})
	expect("region", regions[1], false)
	expect("account", accounts[1], true)
	m.must(sns.DeleteTopic{Topic: topic})
	expect("account", accounts[1], false)
}

// TestSigningKeyRefused: an answer is in the digest, so its text is our own.
func TestSigningKeyRefused(t *testing.T) {
	m := newTestMachine(t)
	want := &SettingError{"sns-signing-key", "", "it is no RSA key with a certificate"}
	if err := m.do(AddSigningKey{Key: SigningKey{Private: []byte("x")}}).Err; !reflect.DeepEqual(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
