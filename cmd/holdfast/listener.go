package main

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"time"
)

const (
	// acceptAgain is how long a port rests when it could not accept.
	acceptAgain = 100 * time.Millisecond

	// acceptRemind is how often it is logged that it cannot.
	acceptRemind = time.Minute
)

// maxConnections is how many connections the API port may have: at most three in
// four of the process's file descriptors. The log, the other members and the admin
// port need the rest; a log that cannot open its next segment ends the node.
func maxConnections() int {
	const most = 100_000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return most
	}
	return int(min(limit.Cur/4*3, most))
}

// patientListener goes on when a connection could not be accepted for want of file
// descriptors or memory. Otherwise a client that opens many connections could end
// the node: what serves a port ends with the first error.
type patientListener struct {
	net.Listener
	log  *slog.Logger
	said time.Time // when it was logged last; Accept has one caller
}

// Accept implements net.Listener.
func (l *patientListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if !isPassing(err) {
			return conn, err
		}
		if now := time.Now(); now.Sub(l.said) >= acceptRemind {
			l.log.Error("connections not accepted", "address", l.Addr().String(), "err", err)
			l.said = now
		}
		time.Sleep(acceptAgain)
	}
}

// isPassing reports whether an error of Accept is none of the listener itself.
func isPassing(err error) bool {
	for _, passing := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// portURL is the URL of a port. One that listens on all addresses has none that others
// could use; on loopback it is reached at least by this machine.
func portURL(scheme string, address net.Addr) string {
	text := address.String()
	if at, err := netip.ParseAddrPort(text); err == nil && at.Addr().IsUnspecified() {
		text = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
	}
	return scheme + "://" + text
}
