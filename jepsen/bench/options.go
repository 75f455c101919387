package bench

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"
)

// The protocols of SQS.
const (
	JSON  = "json"  // AWS JSON 1.0
	Query = "query" // AWS Query, answered in XML
)

// The clients that make the load.
const (
	// Standard is Go's net/http, which builds each request anew and costs about what
	// SDKs do. The aims of the project are meant with such a load.
	Standard = "standard"
	// Raw writes bytes that were built before, and leaves more of the machine to
	// the broker, and still more to the echo server.
	Raw = "raw"
)

// The phases, in the order in which they run by default.
const (
	phaseSend  = "send"
	phaseBatch = "batch"
	phaseDrain = "drain"
	phaseCycle = "cycle"
	phaseTrip  = "trip"
	phaseWake  = "wake"

	// Only when they are asked for: they need many queues.
	phasePublish = "publish"
	phaseDeliver = "deliver"
)

// Phases returns the names of all phases in the order in which they make sense.
func Phases() []string {
	return []string{phaseSend, phaseBatch, phaseDrain, phaseCycle, phaseTrip, phaseWake}
}

// The bounds of Options.
const (
	maxConnections = 10_000
	maxBatch       = 10      // entries of a SendMessageBatch
	maxBody        = 1 << 20 // bytes of a message, and of a batch
	minBody        = stampSize
)

// Options say what to measure. The zero value of each field stands for its
// default.
type Options struct {
	// Endpoints are the URLs of the nodes to load; the connections are shared
	// out among them. None: a node of Binary is started for the purpose, with its
	// data in a temporary folder below the working directory.
	Endpoints   []string
	Protocol    string        // JSON (default) or Query
	Client      string        // Standard (default) or Raw
	Connections int           // default 64; at most 10,000
	Duration    time.Duration // of one measurement; default 5 s
	Body        int           // bytes of a message body, 16 to 1 MiB; default 1,024
	Batch       int           // messages of a send, 1 (default) to 10
	Queues      int           // default 1; each connection uses one
	Groups      int           // message groups; default 0, which means standard queues
	Phases      []string      // default: all of Phases()
	Backlogs    []string      // for Backlog: all, half, expiring; default all three
	Floor       bool          // measure the echo server as well
	Rounds      int           // pairs of floor and broker measurements with Floor; default 5
	JSON        string        // file that gets the report as JSON; "" for none
	Binary      string        // the holdfast binary, for the node and the echo server; default: this one
	Flags       []string      // more flags for the node that is started
	Version     string        // reported as "version"
}

func (o Options) withDefaults() (Options, error) {
	setDefault(&o.Protocol, JSON)
	setDefault(&o.Client, Standard)
	setDefault(&o.Connections, 64)
	setDefault(&o.Duration, 5*time.Second)
	setDefault(&o.Body, 1024)
	setDefault(&o.Batch, 1)
	setDefault(&o.Queues, 1)
	setDefault(&o.Rounds, 5)
	if len(o.Phases) == 0 {
		o.Phases = Phases()
	}
	if o.Binary == "" {
		self, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("find own binary: %w", err)
		}
		o.Binary = self
	}
	return o, o.Validate()
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports the first field with a value that is neither zero nor in
// range.
func (o Options) Validate() error {
	for _, e := range o.Endpoints {
		u, err := url.Parse(e)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return fmt.Errorf("endpoint %q: want http://HOST:PORT", e)
		}
	}
	if o.Protocol != "" && o.Protocol != JSON && o.Protocol != Query {
		return fmt.Errorf("protocol %q: want %s or %s", o.Protocol, JSON, Query)
	}
	if o.Client != "" && o.Client != Standard && o.Client != Raw {
		return fmt.Errorf("client %q: want %s or %s", o.Client, Standard, Raw)
	}
	for _, phase := range o.Phases {
		if known := append(Phases(), phasePublish, phaseDeliver); !slices.Contains(known, phase) {
			return fmt.Errorf("phase %q: want one of %v", phase, known)
		}
	}
	for _, name := range o.Backlogs {
		if !slices.ContainsFunc(backlogForms(), func(f backlogForm) bool { return f.name == name }) {
			return fmt.Errorf("backlog %q: want all, half or expiring", name)
		}
	}
	for _, n := range []struct {
		name           string
		value, low, up int
	}{
		{"connections", o.Connections, 1, maxConnections},
		{"body", o.Body, minBody, maxBody},
		{"batch", o.Batch, 1, maxBatch},
		{"queues", o.Queues, 1, 1_000_000},
		{"groups", o.Groups, 0, maxGroups},
		{"rounds", o.Rounds, 1, 1000},
	} {
		if n.value != 0 && (n.value < n.low || n.value > n.up) {
			return fmt.Errorf("%s %d: want %d to %d", n.name, n.value, n.low, n.up)
		}
	}
	if o.Duration < 0 {
		return fmt.Errorf("duration %v: want more than 0", o.Duration)
	}
	if o.Body*o.Batch > maxBody {
		return fmt.Errorf("batch %d of %d bytes: want at most %d bytes in all", o.Batch, o.Body, maxBody)
	}
	return nil
}
