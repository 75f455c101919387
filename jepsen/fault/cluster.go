package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrNoLeader says that no node led in time.
var ErrNoLeader = errors.New("no leader in time")

// ClusterOptions say which cluster to run.
type ClusterOptions struct {
	Binary string   // path of the holdfast binary
	Dir    string   // of data and certificates
	Data   []string // data folders, one for each node; default n1, n2, n3 in Dir
	Flags  []string // more flags of `holdfast serve`, for all nodes
	// Network is where the nodes run: node i on its host i, clients on host 3.
	// Then the nodes prove to each other who they are. Nil: on loopback
	// addresses, in the clear.
	Network      *Network
	ReadyTimeout time.Duration // how long a start may take; default 2 min
}

// clusterSize is the number of nodes of a Cluster.
const clusterSize = 3

// Cluster is three brokers that are members of one cluster: n1, n2 and n3. Its
// methods may be called by several goroutines, but those that start and end a
// process by one at a time for each node.
type Cluster struct {
	nodes   []*Node
	options ClusterOptions
}

// StartCluster starts the processes and waits until all nodes are ready. If that
// takes too long, they are gone when StartCluster returns.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	c, err := NewCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	return c, nil
}

// NewCluster returns a cluster whose processes have yet to be started.
func NewCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	peers, err := peerAddresses(ctx, o.Network)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o}
	var members []string
	for i, address := range peers {
		members = append(members, fmt.Sprintf("%s=%s", nodeName(i), address))
	}
	for i := range clusterSize {
		identity, err := c.identityFlags(ctx, i)
		if err != nil {
			return nil, err
		}
		n := Options{Binary: o.Binary, DataDir: filepath.Join(o.Dir, nodeName(i)), ReadyTimeout: o.ReadyTimeout}
		if o.Data != nil {
			n.DataDir = o.Data[i]
		}
		if o.Network != nil {
			n.Host, n.Client = o.Network.Host(i), o.Network.Host(clusterSize)
		}
		n.Flags = append([]string{"--node", nodeName(i), "--cluster", strings.Join(members, ",")}, identity...)
		n.Flags = append(n.Flags, o.Flags...)
		c.nodes = append(c.nodes, NewNode(n))
	}
	return c, nil
}

func nodeName(i int) string { return fmt.Sprint("n", i+1) }

// peerAddresses chooses addresses for the peer ports, which every node must know
// before any listens. On loopback an address of its own for each cluster keeps
// the ports from being taken meanwhile.
func peerAddresses(ctx context.Context, network *Network) ([]string, error) {
	var addresses []string
	a, b := 1+rand.IntN(250), rand.IntN(250)
	for i := range clusterSize {
		if network != nil {
			addresses = append(addresses, network.Host(i).Address()+":4568")
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.%d.%d.%d:0", a, b, i+1))
		if err != nil {
			return nil, fmt.Errorf("choose peer address: %w", err)
		}
		addresses = append(addresses, l.Addr().String())
		if err := l.Close(); err != nil {
			return nil, fmt.Errorf("choose peer address: %w", err)
		}
	}
	return addresses, nil
}

// identityFlags are those by which node i proves who it is.
func (c *Cluster) identityFlags(ctx context.Context, i int) ([]string, error) {
	if c.options.Network == nil {
		return []string{"--insecure-peers"}, nil
	}
	dir := filepath.Join(c.options.Dir, "certificates")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	if i == 0 {
		if err := command(ctx, c.options.Binary, "cert", "ca", "--dir", dir); err != nil {
			return nil, err
		}
	}
	if err := command(ctx, c.options.Binary, "cert", "node", nodeName(i), "--dir", dir); err != nil {
		return nil, err
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"--insecure", "--peer-ca", file("ca.pem"),
		"--peer-cert", file(nodeName(i) + ".pem"), "--peer-key", file(nodeName(i) + "-key.pem"),
	}, nil
}

// Start starts the processes that are not running and waits until all nodes are
// ready.
func (c *Cluster) Start(ctx context.Context) error {
	err := c.each(func(n *Node) error {
		if n.Running() {
			return nil
		}
		return n.Launch(ctx)
	})
	if err != nil {
		return err
	}
	return c.each(func(n *Node) error { return n.AwaitReady(ctx) })
}

// each calls f for all nodes at once.
func (c *Cluster) each(f func(*Node) error) error {
	errs := make([]error, len(c.nodes))
	var calls sync.WaitGroup
	for i, n := range c.nodes {
		calls.Go(func() { errs[i] = f(n) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// Kill ends all processes at once, with SIGKILL.
func (c *Cluster) Kill() error {
	return c.each(func(n *Node) error { return n.Kill() })
}

// Nodes are n1, n2 and n3.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Others are all nodes but one.
func (c *Cluster) Others(but *Node) []*Node {
	var others []*Node
	for _, n := range c.nodes {
		if n != but {
			others = append(others, n)
		}
	}
	return others
}

// Endpoints are the URLs of the API ports.
func (c *Cluster) Endpoints() []string {
	var endpoints []string
	for _, n := range c.nodes {
		endpoints = append(endpoints, n.Endpoint())
	}
	return endpoints
}

// statusPoll is how often nodes are asked for their status.
const statusPoll = 20 * time.Millisecond

// Leader waits until one of the given nodes, by default of all, leads, and
// returns it. One that was replaced but does not know it yet is not taken for the
// leader as long as its successor answers. It returns ErrNoLeader when ctx ends.
func (c *Cluster) Leader(ctx context.Context, among ...*Node) (*Node, error) {
	if len(among) == 0 {
		among = c.nodes
	}
	for {
		if n := c.leader(ctx, among); n != nil {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("look for the leader: %w", ErrNoLeader)
		case <-time.After(statusPoll):
		}
	}
}

// leader is the node that leads in the latest term that any of them knows.
func (c *Cluster) leader(ctx context.Context, among []*Node) *Node {
	var mu sync.Mutex
	var leader *Node
	var latest uint64
	var asked sync.WaitGroup
	for _, n := range among {
		asked.Go(func() {
			s, err := n.Status(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if s.Term > latest {
				latest, leader = s.Term, nil
			}
			if s.Term == latest && s.Role == "leader" && s.Ready {
				leader = n
			}
		})
	}
	asked.Wait()
	return leader
}

// AwaitCaughtUp waits until all nodes are ready and have applied what the leader
// has by now, and ctx has not ended.
func (c *Cluster) AwaitCaughtUp(ctx context.Context) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	s, err := leader.Status(ctx)
	if err != nil {
		return err
	}
	goal := s.applied()
	return c.each(func(n *Node) error {
		for {
			if s, err := n.Status(ctx); err == nil && s.Ready && s.applied() >= goal {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait until %s has caught up: %w", n.DataDir(), ctx.Err())
			case <-time.After(statusPoll):
			}
		}
	})
}

// Transport makes HTTP requests from where clients of the cluster are.
func (c *Cluster) Transport() *http.Transport {
	t := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	if c.options.Network != nil {
		t.DialContext = c.options.Network.Host(clusterSize).Dial
	}
	return t
}
