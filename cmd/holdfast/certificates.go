package main

import (
	"crypto/x509"
	"log/slog"
	"time"

	"holdfast.internal/httpapi/admin"
)

const (
	// expiryEvery is how often it is looked whether a certificate expires soon.
	expiryEvery = 24 * time.Hour

	// expiryNotice is how long before its end a certificate is warned of, and
	// expiryShare the part of its validity, for those that do not live long.
	expiryNotice = 30 * 24 * time.Hour
	expiryShare  = 3
)

// namedCertificate is one that others refuse this node for when it expires.
type namedCertificate struct {
	name string // peer, peer-ca or api
	*x509.Certificate
}

// certificates are those in force.
func (b *broker) certificates() (list []namedCertificate) {
	if b.peers != nil {
		own, authority := b.peers.Certificates()
		list = append(list, namedCertificate{"peer", own}, namedCertificate{"peer-ca", authority})
	}
	if shown := b.api.Certificate(); shown != nil {
		list = append(list, namedCertificate{"api", shown})
	}
	return list
}

// shownCertificates is certificates, for the admin port.
func (b *broker) shownCertificates() (list []admin.Certificate) {
	for _, c := range b.certificates() {
		list = append(list, admin.Certificate{Name: c.name, NotAfter: c.NotAfter})
	}
	return list
}

// reread reads the certificates again, for connections to come. What cannot be used
// changes nothing.
func (b *broker) reread() {
	failed := map[string]error{}
	if b.https {
		failed["api"] = b.api.ReloadCertificate()
	}
	if b.peers != nil {
		failed["peer"] = b.peers.Reread()
	}
	for _, c := range b.certificates() {
		err, known := failed[c.name]
		switch {
		case !known: // it came with another one
		case err != nil:
			b.log.Warn("certificate not reread: the old one stays", "certificate", c.name, "not_after", c.NotAfter, "err", err)
		default:
			b.log.Info("certificate reread", "certificate", c.name, "not_after", c.NotAfter)
		}
	}
}

// tellExpiry logs which certificates have expired, or will soon. For those of the peer
// port that looks like a network that is cut.
func tellExpiry(certificates []namedCertificate, now time.Time, log *slog.Logger) {
	for _, c := range certificates {
		notice := min(expiryNotice, c.NotAfter.Sub(c.NotBefore)/expiryShare)
		switch {
		case now.After(c.NotAfter):
			log.Error("certificate has expired: others refuse this node", "certificate", c.name, "not_after", c.NotAfter)
		case now.Add(notice).After(c.NotAfter):
			log.Warn("certificate expires soon", "certificate", c.name, "not_after", c.NotAfter)
		}
	}
}
