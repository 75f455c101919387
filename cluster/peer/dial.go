package peer

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// dial makes a connection to a node, up to its answer to our hello. The caller
// drops it.
func (p *Port) dial(ctx context.Context, to Target, k kind, group byte) (net.Conn, error) {
	connecting, cancel := context.WithTimeout(ctx, p.dialTimeout)
	defer cancel()
	raw, err := p.config.Dial(connecting, to.Address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", to, err)
	}
	if !p.track(raw) {
		return nil, fmt.Errorf("dial %s: %w", to, ErrClosed)
	}
	conn, err := p.introduce(ctx, raw, to, k, group)
	if err != nil {
		_ = p.drop(raw)
		return nil, fmt.Errorf("dial %s: %w", to, err)
	}
	p.replace(raw, conn, to.Name)
	return conn, nil
}

// introduce goes through TLS and the hello, and checks who answers.
func (p *Port) introduce(ctx context.Context, conn net.Conn, to Target, k kind, group byte) (net.Conn, error) {
	abandon := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer abandon()
	if err := conn.SetDeadline(p.config.Now().Add(helloTimeout)); err != nil {
		return nil, err
	}
	if p.config.Credentials != nil {
		c := p.config.Credentials.current().config.Clone()
		c.ServerName = to.Name
		secured := tls.Client(conn, c)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secured
	}
	h := hello{kind: k, group: group, cluster: p.config.ClusterID(), from: p.config.Name, to: to.Name}
	if _, err := conn.Write(h.encode()); err != nil {
		return nil, err
	}
	a, err := readAnswer(conn)
	if err != nil {
		return nil, err
	}
	if a.verdict == accepted {
		a.verdict = p.judgeAnswer(conn, to, h, a)
	}
	if a.verdict != accepted {
		return nil, &refusedError{a.verdict, a}
	}
	return conn, conn.SetDeadline(time.Time{})
}

func (p *Port) judgeAnswer(conn net.Conn, to Target, h hello, a helloAnswer) verdict {
	if a.name != to.Name || !certified(conn, to.Name) {
		return refusedName
	}
	return h.kind.judgeClusters(h.cluster, a.cluster)
}
