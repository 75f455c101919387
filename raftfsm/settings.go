package raftfsm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast.internal/sqs"
)

// StateVersion is the newest version of the state's behaviour that this
// program knows. Every change of what apply does with an existing command
// raises it and is behind a check of Settings.Version.
const StateVersion = 1

// Settings are the replicated settings: all that changes the outcome of apply
// and is not a command's own. Form seeds them, SetSetting changes them. A value
// that came from a Machine must not be changed.
type Settings struct {
	ClusterID string // minted when the cluster formed; 1–64 printable characters
	Account   string // of requests that name none; 12 digits
	Region    string // in ARNs; lower case letters, digits, hyphens
	PublicURL string // that queue URLs begin with; empty: what the request came to
	SNSURL    string // that URLs in SNS messages begin with while PublicURL is empty; never empty itself
	// SNSCertURL is what the URLs of certificates in SNS messages begin with; empty:
	// as the other URLs.
	SNSCertURL string
	Rules      sqs.Rules
	TestMode   bool // the rules that AWS has fixed may be changed

	// QueuePolicies says whether the access policies of queues are enforced.
	QueuePolicies PolicyMode

	FilterLimit int // filter policies per topic; 0: no limit

	// HandleKeys sign receipt handles, oldest first. Old ones stay, for
	// handles outlive a change of keys.
	HandleKeys []HandleKey

	// SigningKeys sign SNS messages, oldest first. There is none before the first
	// topic (AddSigningKey).
	SigningKeys []SigningKey
	// SNSHosts is what the URLs in SNS messages began with, oldest first.
	SNSHosts []SNSHosts

	// Version is that of the state's behaviour, 1–StateVersion.
	Version uint32
}

// PolicyMode is a way to treat access policies.
type PolicyMode string

// The ways to treat access policies.
const (
	PoliciesOpen    PolicyMode = "open"    // stored and returned, but not evaluated
	PoliciesEnforce PolicyMode = "enforce" // evaluated as AWS does
)

// HandleKey is a key for receipt handles.
type HandleKey struct {
	ID   byte // in the handle; each key of a cluster has another
	Key  [32]byte
	From sqs.Time // receives from this time on are signed with it

	macs *sync.Pool // of *handleMAC; nil in a value that no Machine has seen
}

const maxHandleKeys = 16

// DefaultSettings are those of AWS, without a cluster id, and with neither
// handle keys nor the wait after DeleteQueue: tests create their queues anew.
func DefaultSettings() Settings {
	return Settings{
		Account: "000000000000",
		Region:  "us-east-1",
		SNSURL:  "http://127.0.0.1:4566",
		Rules: sqs.Rules{
			InFlightLimit: 120_000,
			PurgeWait:     60 * time.Second,
			DedupWindow:   5 * time.Minute,
		},
		QueuePolicies: PoliciesOpen,
		Version:       StateVersion,
	}
}

// withDefaults fills what is empty and must not be.
func (s Settings) withDefaults() Settings {
	d := DefaultSettings()
	if s.Account == "" {
		s.Account = d.Account
	}
	if s.Region == "" {
		s.Region = d.Region
	}
	if s.SNSURL == "" {
		s.SNSURL = d.SNSURL
	}
	if s.Rules.InFlightLimit == 0 {
		s.Rules.InFlightLimit = d.Rules.InFlightLimit
	}
	if s.Rules.DedupWindow == 0 {
		s.Rules.DedupWindow = d.Rules.DedupWindow
	}
	if s.QueuePolicies == "" {
		s.QueuePolicies = d.QueuePolicies
	}
	if s.Version == 0 {
		s.Version = d.Version
	}
	return s
}

// SettingError says that a setting cannot have a value. It is an answer to the
// operator, and the same on every replica.
type SettingError struct {
	Name   string
	Value  string
	Reason string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("setting %s cannot be %q: %s", e.Name, e.Value, e.Reason)
}

// NamedSetting is a setting as operators see it.
type NamedSetting struct{ Name, Value string }

// List gives all settings but the keys, under the names of the flags that seed
// them, in a fixed order.
func (s Settings) List() []NamedSetting {
	list := make([]NamedSetting, 0, len(settingRows))
	for _, row := range settingRows {
		list = append(list, NamedSetting{row.name, row.get(&s)})
	}
	return list
}

// Set changes one setting by name. It returns a *SettingError, and changes
// nothing, if there is no such setting, if it is fixed, or if the value is not
// one for it. Durations are written as Go does ("60s").
func (s *Settings) Set(name, value string) error {
	for _, row := range settingRows {
		if row.name != name {
			continue
		}
		if row.set == nil {
			return &SettingError{name, value, "it was fixed when the cluster formed"}
		}
		if reason := row.set(s, value); reason != "" {
			return &SettingError{name, value, reason}
		}
		return nil
	}
	return &SettingError{name, value, "there is no such setting"}
}

// Validate checks every value; its error is a *SettingError.
func (s *Settings) Validate() error {
	scratch := *s
	for _, row := range settingRows {
		value := row.get(s)
		if row.set == nil || row.name == dedupWindowName && s.Rules.DedupWindow == DefaultSettings().Rules.DedupWindow {
			continue
		}
		if reason := row.set(&scratch, value); reason != "" {
			return &SettingError{row.name, value, reason}
		}
	}
	if !isPrintable(s.ClusterID, 1, 64) {
		return &SettingError{"cluster-id", s.ClusterID, "1 to 64 printable characters are needed"}
	}
	if s.Version < 1 || s.Version > StateVersion {
		version := strconv.FormatUint(uint64(s.Version), 10)
		return &SettingError{"state-version", version, fmt.Sprintf("this program knows 1 to %d", StateVersion)}
	}
	return validateKeys(s.HandleKeys)
}

func validateKeys(keys []HandleKey) error {
	count := strconv.Itoa(len(keys))
	if len(keys) < 1 || len(keys) > maxHandleKeys {
		return &SettingError{"handle-keys", count, fmt.Sprintf("1 to %d keys are needed", maxHandleKeys)}
	}
	var seen [256]bool
	for i, k := range keys {
		if seen[k.ID] {
			return &SettingError{"handle-keys", count, "two keys have the same id"}
		}
		if i > 0 && k.From < keys[i-1].From {
			return &SettingError{"handle-keys", count, "the oldest key must come first"}
		}
		seen[k.ID] = true
	}
	return nil
}

// settingRow describes one setting. What set returns is the reason for which a
// value was refused; a setting without set cannot be changed.
type settingRow struct {
	name string
	get  func(*Settings) string
	set  func(s *Settings, value string) (reason string)
}

const dedupWindowName = "test-dedup-window"

// settingRows are all settings that an operator may see.
var settingRows = []settingRow{
	{
		name: "cluster-id",
		get:  func(s *Settings) string { return s.ClusterID },
	},
	{
		name: "state-version",
		get:  func(s *Settings) string { return strconv.FormatUint(uint64(s.Version), 10) },
	},
	{
		name: "test-mode",
		get:  func(s *Settings) string { return strconv.FormatBool(s.TestMode) },
	},
	{
		name: "account",
		get:  func(s *Settings) string { return s.Account },
		set:  setAccount,
	},
	{
		name: "region",
		get:  func(s *Settings) string { return s.Region },
		set:  setRegion,
	},
	{
		name: "public-url",
		get:  func(s *Settings) string { return s.PublicURL },
		set:  func(s *Settings, v string) string { return setURL(&s.PublicURL, v) },
	},
	{
		name: "sns-url",
		get:  func(s *Settings) string { return s.SNSURL },
		set:  setSNSURL,
	},
	{
		name: "sns-cert-url",
		get:  func(s *Settings) string { return s.SNSCertURL },
		set:  func(s *Settings, v string) string { return setURL(&s.SNSCertURL, v) },
	},
	{
		name: "sns-filter-limit",
		get:  func(s *Settings) string { return strconv.Itoa(s.FilterLimit) },
		set:  setFilterLimit,
	},
	{
		name: "queue-policies",
		get:  func(s *Settings) string { return string(s.QueuePolicies) },
		set:  setQueuePolicies,
	},
	{
		name: "inflight-limit",
		get:  func(s *Settings) string { return strconv.Itoa(s.Rules.InFlightLimit) },
		set:  setInFlightLimit,
	},
	{
		name: "purge-wait",
		get:  func(s *Settings) string { return formatDuration(s.Rules.PurgeWait) },
		set: func(s *Settings, v string) string {
			return setDuration(&s.Rules.PurgeWait, v, 0, time.Hour)
		},
	},
	{
		name: "delete-wait",
		get:  func(s *Settings) string { return formatDuration(s.Rules.DeleteWait) },
		set: func(s *Settings, v string) string {
			return setDuration(&s.Rules.DeleteWait, v, 0, time.Hour)
		},
	},
	{
		name: dedupWindowName,
		get:  func(s *Settings) string { return formatDuration(s.Rules.DedupWindow) },
		set:  setDedupWindow,
	},
}

func setAccount(s *Settings, v string) string {
	if len(v) != 12 || strings.Trim(v, "0123456789") != "" {
		return "an account id is 12 digits"
	}
	s.Account = v
	return ""
}

func setRegion(s *Settings, v string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-"
	if len(v) < 1 || len(v) > 32 || strings.Trim(v, allowed) != "" {
		return "a region is 1 to 32 lower case letters, digits and hyphens"
	}
	s.Region = v
	return ""
}

func setURL(url *string, v string) string {
	v = strings.TrimRight(v, "/")
	host, isHTTP := strings.CutPrefix(v, "http://")
	if !isHTTP {
		host, isHTTP = strings.CutPrefix(v, "https://")
	}
	ok := isHTTP && isPrintable(host, 1, 512) && host[0] != '/' && !strings.ContainsAny(host, "?#@\"<>\\")
	if v != "" && !ok {
		return "a URL with http or https, a host, and neither query nor fragment is needed"
	}
	*url = v
	return ""
}

// setSNSURL needs a host: messages have URLs, whatever else is set.
func setSNSURL(s *Settings, v string) string {
	if strings.Trim(v, "/") == "" {
		return "it cannot be empty"
	}
	return setURL(&s.SNSURL, v)
}

func setFilterLimit(s *Settings, v string) string {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 1_000_000 {
		return "it is a number from 0 to 1000000; 0 stands for no limit"
	}
	s.FilterLimit = n
	return ""
}

func setQueuePolicies(s *Settings, v string) string {
	mode := PolicyMode(v)
	if mode != PoliciesOpen && mode != PoliciesEnforce {
		return "it is open or enforce"
	}
	s.QueuePolicies = mode
	return ""
}

func setInFlightLimit(s *Settings, v string) string {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 1_000_000 {
		return "it is a number from 1 to 1000000"
	}
	s.Rules.InFlightLimit = n
	return ""
}

func setDedupWindow(s *Settings, v string) string {
	if !s.TestMode {
		return "it can be changed in test mode only; AWS has 5 minutes"
	}
	return setDuration(&s.Rules.DedupWindow, v, 100*time.Millisecond, time.Hour)
}

func setDuration(d *time.Duration, v string, least, most time.Duration) string {
	parsed, err := time.ParseDuration(v)
	if err != nil || parsed < least || parsed > most || parsed%time.Millisecond != 0 {
		return fmt.Sprintf("it is a time from %s to %s in whole milliseconds, such as 60s",
			formatDuration(least), formatDuration(most))
	}
	*d = parsed
	return ""
}

// formatDuration writes whole seconds as seconds: 60s, not 1m0s.
func formatDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// isPrintable reports whether s is least to most printable ASCII characters
// without a space.
func isPrintable(s string, least, most int) bool {
	notGraphic := func(c rune) bool { return c <= ' ' || c > '~' }
	return len(s) >= least && len(s) <= most && !strings.ContainsFunc(s, notGraphic)
}

// settingsFormat is the first byte of encoded settings.
const settingsFormat = 1

func settingsFields(f *fields, s Settings) Settings {
	if format := f.byte(settingsFormat); format != settingsFormat {
		f.fail(fmt.Errorf("settings: %w: %d", ErrFormat, format))
	}
	s.ClusterID = f.str(s.ClusterID)
	s.Account = f.str(s.Account)
	s.Region = f.str(s.Region)
	s.PublicURL = f.str(s.PublicURL)
	s.SNSURL = f.str(s.SNSURL)
	s.SNSCertURL = f.str(s.SNSCertURL)
	s.Rules.InFlightLimit = f.int(s.Rules.InFlightLimit)
	s.Rules.PurgeWait = f.dur(s.Rules.PurgeWait)
	s.Rules.DeleteWait = f.dur(s.Rules.DeleteWait)
	s.Rules.DedupWindow = f.dur(s.Rules.DedupWindow)
	s.TestMode = f.bool(s.TestMode)
	s.QueuePolicies = PolicyMode(f.str(string(s.QueuePolicies)))
	s.FilterLimit = f.int(s.FilterLimit)
	s.HandleKeys = list(f, s.HandleKeys, maxHandleKeys, handleKeyFields)
	s.SigningKeys = list(f, s.SigningKeys, maxSigningKeys, signingKeyFields)
	s.SNSHosts = list(f, s.SNSHosts, maxSNSHosts, snsHostsFields)
	s.Version = f.u32(s.Version)
	return s
}

func handleKeyFields(f *fields, k HandleKey) HandleKey {
	k.ID = f.byte(k.ID)
	f.fixed(k.Key[:])
	k.From = f.time(k.From)
	return k
}

func formFields(f *fields, c Form) Form {
	c.ClusterID = f.str(c.ClusterID)
	c.Settings = settingsFields(f, c.Settings)
	return c
}

func pulseFields(_ *fields, c Pulse) Pulse { return c }

func setSettingFields(f *fields, c SetSetting) SetSetting {
	c.Name = f.str(c.Name)
	c.Value = f.str(c.Value)
	return c
}

// published is a copy of s whose keys are ready to be used by many.
func (s Settings) published() *Settings {
	s.HandleKeys = slices.Clone(s.HandleKeys)
	for i := range s.HandleKeys {
		k := &s.HandleKeys[i]
		if k.macs == nil {
			k.macs = newMACPool(k.Key)
		}
	}
	s.SigningKeys = slices.Clone(s.SigningKeys)
	for i := range s.SigningKeys {
		k := &s.SigningKeys[i]
		if k.signer == nil {
			k.signer, _ = k.parse() // it was checked when it came; without it nothing is signed
		}
	}
	return &s
}
