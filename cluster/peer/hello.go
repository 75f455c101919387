package peer

import (
	"errors"
	"fmt"
	"io"
)

const (
	magic       = "HFPP"
	helloFormat = 1
)

// kind is what a connection is for.
type kind byte

const (
	kindRaft kind = 1 + iota
	kindRequests
	kindFormation
)

// verdict is the answer to a hello.
type verdict byte

const (
	accepted verdict = iota
	refusedCluster
	refusedName
	refusedSender
	refusedKind
	refusedUnformed
)

func (v verdict) String() string {
	switch v {
	case accepted:
		return "accepted"
	case refusedCluster:
		return "the nodes belong to different clusters"
	case refusedName:
		return "another node was reached than the one meant"
	case refusedSender:
		return "the certificate does not name the sender"
	case refusedUnformed:
		return "one of the nodes has no cluster yet"
	case refusedKind:
		return "unknown kind of connection"
	}
	return fmt.Sprintf("unknown verdict %d", byte(v))
}

// hello is what the one who dials says first.
type hello struct {
	kind    kind
	group   byte
	cluster string // "" until the cluster is formed
	from    string
	to      string
}

// helloAnswer is what the other one says then.
type helloAnswer struct {
	verdict verdict
	cluster string
	name    string
}

func (h hello) encode() []byte {
	b := append([]byte(magic), helloFormat, byte(h.kind), h.group)
	for _, s := range []string{h.cluster, h.from, h.to} {
		b = appendString(b, s)
	}
	return b
}

func (a helloAnswer) encode() []byte {
	b := append([]byte(magic), helloFormat, byte(a.verdict))
	return appendString(appendString(b, a.cluster), a.name)
}

// who is the node that answers, by its own word.
func (a helloAnswer) who() string {
	if a.cluster == "" {
		return fmt.Sprintf("it is %q, of no cluster", a.name)
	}
	return fmt.Sprintf("it is %q of cluster %s", a.name, a.cluster)
}

func appendString(b []byte, s string) []byte {
	s = s[:min(len(s), 255)]
	return append(append(b, byte(len(s))), s...)
}

// readHello reads no byte beyond the hello: what follows belongs to raft.
func readHello(r io.Reader) (hello, error) {
	var fixed [len(magic) + 3]byte
	if err := readPreamble(r, fixed[:]); err != nil {
		return hello{}, err
	}
	h := hello{kind: kind(fixed[5]), group: fixed[6]}
	err := readStrings(r, &h.cluster, &h.from, &h.to)
	return h, err
}

func readAnswer(r io.Reader) (helloAnswer, error) {
	var fixed [len(magic) + 2]byte
	if err := readPreamble(r, fixed[:]); err != nil {
		return helloAnswer{}, err
	}
	a := helloAnswer{verdict: verdict(fixed[5])}
	err := readStrings(r, &a.cluster, &a.name)
	return a, err
}

var errNotAPeer = errors.New("not the peer protocol")

// readPreamble fills b and checks that it begins with magic and format.
func readPreamble(r io.Reader, b []byte) error {
	if _, err := io.ReadFull(r, b); err != nil {
		return fmt.Errorf("read hello: %w", err)
	}
	if string(b[:len(magic)]) != magic {
		return fmt.Errorf("read hello: %w", errNotAPeer)
	}
	if b[len(magic)] != helloFormat {
		return fmt.Errorf("read hello: format %d, this version knows %d", b[len(magic)], helloFormat)
	}
	return nil
}

func readStrings(r io.Reader, into ...*string) error {
	var buf [256]byte
	for _, s := range into {
		if _, err := io.ReadFull(r, buf[:1]); err != nil {
			return fmt.Errorf("read hello: %w", err)
		}
		b := buf[1 : 1+int(buf[0])]
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("read hello: %w", err)
		}
		*s = string(b)
	}
	return nil
}

// judgeClusters decides whether nodes of these clusters may talk. A node that has
// no cluster yet talks about formation only.
func (k kind) judgeClusters(ours, theirs string) verdict {
	switch {
	case ours == "" || theirs == "":
		if k != kindFormation {
			return refusedUnformed
		}
	case ours != theirs:
		return refusedCluster
	}
	return accepted
}
