package peer

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"time"
)

// maxStrangers is how many accepted connections may be without a valid hello.
// One more, and the oldest is closed: it has had more time than a node needs.
const maxStrangers = 256

func (p *Port) queue(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strangers = append(p.strangers, conn)
	if len(p.strangers) > maxStrangers {
		_ = p.strangers[0].Close()
		p.strangers = slices.Delete(p.strangers, 0, 1)
	}
}

func (p *Port) unqueue(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.strangers, conn); i >= 0 {
		p.strangers = slices.Delete(p.strangers, i, i+1)
	}
}

// welcome finds out who has come and what for, and hands the connection on.
func (p *Port) welcome(raw net.Conn) {
	conn, h, err := p.meet(raw)
	p.unqueue(raw)
	if err != nil {
		if p.ctx.Err() == nil {
			p.refusals.note(raw.RemoteAddr(), h, err.Error())
		}
		_ = p.drop(raw)
		return
	}
	v := p.judge(conn, h)
	_, err = conn.Write(helloAnswer{v, p.config.ClusterID(), p.config.Name}.encode())
	if v != accepted && v != refusedUnformed { // which is a matter of moments, or of formation
		p.refusals.note(raw.RemoteAddr(), h, v.String())
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil || v != accepted {
		_ = p.drop(raw)
		return
	}
	p.replace(raw, conn, h.from)
	if h.kind == kindRaft {
		p.deliver(h.group, conn)
		return
	}
	newInbound(p, conn, h).serve()
}

// meet goes through TLS and reads the hello. Of a client without a certificate
// of the cluster's authority not a byte is parsed.
func (p *Port) meet(conn net.Conn) (net.Conn, hello, error) {
	if err := conn.SetDeadline(p.config.Now().Add(helloTimeout)); err != nil {
		return conn, hello{}, err
	}
	if p.config.Credentials != nil {
		secured := tls.Server(conn, p.config.Credentials.current().config)
		ctx, cancel := context.WithTimeout(p.ctx, helloTimeout)
		defer cancel()
		if err := secured.HandshakeContext(ctx); err != nil {
			return conn, hello{}, err
		}
		conn = secured
	}
	h, err := readHello(conn)
	return conn, h, err
}

// judge decides about a hello.
func (p *Port) judge(conn net.Conn, h hello) verdict {
	switch {
	case h.kind < kindRaft || h.kind > kindFormation:
		return refusedKind
	case h.to != p.config.Name:
		return refusedName
	case h.from == "" || !certified(conn, h.from):
		return refusedSender
	}
	return h.kind.judgeClusters(p.config.ClusterID(), h.cluster)
}

// certified reports whether the certificate at the other end of conn is that of
// the node. Without TLS everybody is believed.
func certified(conn net.Conn, name string) bool {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return true
	}
	certs := secured.ConnectionState().PeerCertificates
	return len(certs) > 0 && slices.Contains(certs[0].DNSNames, name)
}
