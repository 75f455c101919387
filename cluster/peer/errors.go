package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// ErrNotSent says that a request was certainly not executed: nothing of it left
// this process, or the other side refused it before a handler saw it.
var ErrNotSent = errors.New("request not sent")

// ErrBroken says that a request was sent, at least in part, and that no answer
// came: the connection broke or the caller left. It may have been executed.
var ErrBroken = errors.New("connection broken")

// ErrRefused says that the hello of a connection was refused: the two nodes do
// not belong to one cluster, or are not who they say. What comes of it wraps
// ErrNotSent, too.
var ErrRefused = errors.New("connection refused by the other node")

// refusedError is an ErrRefused with what the other node said.
type refusedError struct {
	verdict verdict
	answer  helloAnswer
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s: %s (%s)", ErrRefused, e.verdict, e.answer.who())
}

// Is implements what errors.Is looks for.
func (e *refusedError) Is(target error) bool { return target == ErrRefused }

// OtherCluster is the cluster of a node that could not be called because it is not of
// this one's; empty if it is of none. It is false if err says something else.
func OtherCluster(err error) (id string, other bool) {
	var refused *refusedError
	if !errors.As(err, &refused) || refused.verdict != refusedCluster && refused.verdict != refusedUnformed {
		return "", false
	}
	return refused.answer.cluster, true
}

// ErrClosed says that the port was closed.
var ErrClosed = errors.New("peer port closed")

// errStillDialling says that a connection takes long to be made.
var errStillDialling = errors.New("connection is still being made")

// errTooLarge says that a frame is longer than MaxFrame.
var errTooLarge = errors.New("frame too large")

// Reason is why a node could not be called, in a few words for operators, which
// stay the same from try to try; empty if err does not tell.
func Reason(err error) string {
	var (
		network *net.OpError
		refused *refusedError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &unknown):
		return "its certificate is not of this node's authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &host):
		return "its certificate has another name"
	case errors.As(err, &record):
		return "it does not speak TLS"
	case errors.Is(err, errNotAPeer):
		return errNotAPeer.Error()
	case errors.As(err, &network) && network.Op == "remote error":
		return "it refuses this node's certificate: " + network.Err.Error()
	case errors.As(err, &network) && network.Op == "dial":
		return network.Err.Error()
	}
	return ""
}
