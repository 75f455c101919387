package main

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
)

// serveFlags is all that can be said about a node before it runs. Those of the
// group "settings" only seed the replicated settings when a cluster forms.
type serveFlags struct {
	Config      kong.ConfigFlag `placeholder:"FILE" help:"Take flags from a YAML or JSON file; its keys are the names of flags."`
	PrintConfig bool            `help:"Print the flags in force as JSON and exit."`

	Data   string `default:"./holdfast-data" placeholder:"DIR" help:"Folder of the node's data (${default})."`
	Listen string `default:"127.0.0.1:4566" placeholder:"HOST:PORT" help:"Where the API listens (${default})."`
	Admin  string `default:"127.0.0.1:4567" placeholder:"HOST:PORT" help:"Where the admin port listens (${default})."`
	Node   string `default:"n1" placeholder:"NAME" help:"Name of the node (${default})."`

	Cluster       []string `group:"cluster" placeholder:"NAME=HOST:PORT" help:"All members, this node included, with the addresses of their peer ports; none: this node is alone."`
	Peer          string   `group:"cluster" placeholder:"HOST:PORT" help:"Where the peer port listens (this node's address in --cluster)."`
	PeerCA        string   `group:"cluster" name:"peer-ca" placeholder:"FILE" help:"Certificate of the authority that signed those of all members (holdfast cert ca); several in one file while one replaces the other."`
	PeerCert      string   `group:"cluster" placeholder:"FILE" help:"Certificate of this member (holdfast cert node). It, its key and --peer-ca are reread for the next connection when the files change, and on SIGHUP."`
	PeerKey       string   `group:"cluster" placeholder:"FILE" help:"Key of that certificate."`
	InsecurePeers bool     `group:"cluster" help:"Members talk in the clear and believe each other; on loopback addresses only."`

	TLSCert      string         `name:"tls-cert" placeholder:"FILE" help:"Certificate of the API port, which is https then; reread on SIGHUP."`
	TLSKey       string         `name:"tls-key" placeholder:"FILE" help:"Key of that certificate."`
	TrustedProxy []netip.Prefix `placeholder:"CIDR" help:"Load balancers whose X-Forwarded headers name the host in queue URLs."`
	Insecure     bool           `help:"Listen on other addresses than loopback although nobody has to sign in."`

	RequestTimeout time.Duration `default:"10s" placeholder:"D" help:"How long a request waits for a leader (${default})."`
	Memory         byteSize      `placeholder:"SIZE" help:"Limit of the state held in memory (half of the RAM)."`
	DiskReserve    byteSize      `default:"1GiB" placeholder:"SIZE" help:"Free disk space below which nothing new is taken (${default})."`
	LogFormat      string        `enum:",text,json" default:"" placeholder:"text|json" help:"Form of the log on stderr (text on a terminal, JSON otherwise)."`
	LogLevel       string        `enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
	MetricsQueues  int           `default:"1000" placeholder:"N" help:"Queues with metrics of their own; the rest is summed up (${default})."`

	Region         string        `group:"settings" default:"us-east-1" placeholder:"NAME" help:"Region in ARNs (${default})."`
	Account        string        `group:"settings" default:"000000000000" placeholder:"ID" help:"Account of whoever does not name one (${default})."`
	PublicURL      string        `group:"settings" name:"public-url" placeholder:"URL" help:"Start of every queue URL, whatever host a request was sent to, and of the URLs in SNS messages."`
	QueuePolicies  string        `group:"settings" enum:"open,enforce" default:"open" placeholder:"open|enforce" help:"Whether a queue without a policy takes what topics send (${default}); enforce: as AWS, it does not."`
	SNSCertURL     string        `group:"settings" name:"sns-cert-url" placeholder:"URL" help:"Start of the URL of the certificate in signed SNS messages (that of other URLs)."`
	SNSFilterLimit int           `group:"settings" name:"sns-filter-limit" default:"0" placeholder:"N" help:"Filter policies per topic; 0: no limit; AWS: 200 (${default})."`
	PurgeWait      time.Duration `group:"settings" default:"60s" placeholder:"D" help:"Time between two purges of a queue (${default})."`
	DeleteWait     time.Duration `group:"settings" default:"0s" placeholder:"D" help:"Time before the name of a deleted queue is free; AWS: 60s (${default})."`
	InflightLimit  int           `group:"settings" default:"120000" placeholder:"N" help:"Messages in flight per queue (${default})."`

	TestMode            bool          `group:"test" help:"Allow the flags that only tests need."`
	TestDedupWindow     time.Duration `group:"test" default:"5m" placeholder:"D" help:"Seeds how long deduplication ids are known; AWS: 5m."`
	TestSnapshotEntries uint64        `group:"test" default:"0" placeholder:"N" help:"Snapshot after every N log entries."`
}

// minMemory is the least that --memory may be: below it a node is full before it
// has a queue.
const minMemory = 64 << 20

var nodeForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Validate is called by kong when all flags have their values.
func (f *serveFlags) Validate() error {
	switch {
	case f.Data == "":
		return fmt.Errorf("--data names no folder")
	case !nodeForm.MatchString(f.Node):
		return fmt.Errorf("--node %q: want 1 to 64 letters, digits, dots, hyphens or underscores", f.Node)
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return fmt.Errorf("--tls-cert and --tls-key go together")
	case f.RequestTimeout <= 0:
		return fmt.Errorf("--request-timeout %v: want more than 0", f.RequestTimeout)
	case f.Memory > 0 && f.Memory < minMemory:
		return fmt.Errorf("--memory %s: want at least %s", f.Memory, byteSize(minMemory))
	case f.DiskReserve == 0:
		return fmt.Errorf("--disk-reserve 0: want more than 0")
	case f.MetricsQueues < 0:
		return fmt.Errorf("--metrics-queues %d: want at least 0", f.MetricsQueues)
	case f.TestSnapshotEntries > 0 && !f.TestMode:
		return fmt.Errorf("--test-snapshot-entries needs --test-mode")
	}
	if _, err := f.seed(); err != nil {
		return err
	}
	if err := f.checkCluster(); err != nil {
		return err
	}
	return f.checkExposure()
}

// seed is the settings that a cluster forms with. They keep the rules of
// `settings set`.
func (f *serveFlags) seed() (raftfsm.Settings, error) {
	seed := raftfsm.DefaultSettings()
	seed.TestMode = f.TestMode
	settings := []raftfsm.NamedSetting{
		{Name: "account", Value: f.Account},
		{Name: "region", Value: f.Region},
		{Name: "public-url", Value: f.PublicURL},
		{Name: "queue-policies", Value: f.QueuePolicies},
		{Name: "sns-cert-url", Value: f.SNSCertURL},
		{Name: "sns-filter-limit", Value: strconv.Itoa(f.SNSFilterLimit)},
		{Name: "purge-wait", Value: f.PurgeWait.String()},
		{Name: "delete-wait", Value: f.DeleteWait.String()},
		{Name: "inflight-limit", Value: strconv.Itoa(f.InflightLimit)},
	}
	if f.TestDedupWindow != seed.Rules.DedupWindow {
		settings = append(settings, raftfsm.NamedSetting{Name: "test-dedup-window", Value: f.TestDedupWindow.String()})
	}
	for _, setting := range settings {
		if err := seed.Set(setting.Name, setting.Value); err != nil {
			return seed, err
		}
	}
	return seed, nil
}

// checkExposure refuses to serve a network as long as any signature is
// accepted and the admin port asks for none.
func (f *serveFlags) checkExposure() error {
	for _, port := range []struct{ flag, address string }{{"--listen", f.Listen}, {"--admin", f.Admin}} {
		host, err := peer.SplitAddress(port.address)
		if err != nil {
			return fmt.Errorf("%s %q: want HOST:PORT", port.flag, port.address)
		}
		if !f.Insecure && !isLoopback(host) {
			return fmt.Errorf("%s %s is open to the network and nobody has to sign in: choose a loopback address, or say --insecure",
				port.flag, port.address)
		}
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
