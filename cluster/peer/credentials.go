package peer

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
)

// Credentials are the certificate with which a node proves who it is, and the
// authorities whose certificates it believes. They come from files, which may be
// replaced while the port is open: each connection that is made begins with a look
// at them. Connections that are open stay. It is safe for concurrent use.
type Credentials struct {
	files credentialFiles
	name  string
	log   *slog.Logger

	mu    sync.Mutex
	seen  [3]fs.FileInfo // of the files when they were read last, well or not
	proof proof
}

// proof is what the files hold.
type proof struct {
	config    *tls.Config
	authority *x509.Certificate // that signed the node's certificate
}

func (p proof) leaf() *x509.Certificate { return p.config.Certificates[0].Leaf }

// credentialFiles are PEM files.
type credentialFiles struct {
	authorities string // one certificate or more
	certificate string
	key         string
}

// LoadCredentials reads what `holdfast cert` wrote, as PEM files: the certificate of
// the cluster's authority, or of several, and certificate and key of the node name.
// Both ends of a connection must show a certificate of one of them; names are
// checked with the hello. It fails for a certificate that a node with the same
// authorities would refuse, unless all that is wrong is the time, which may be that
// of the clock. What is reread later, or cannot be, goes to log.
func LoadCredentials(authorities, certificate, key, name string, log *slog.Logger) (*Credentials, error) {
	c := &Credentials{files: credentialFiles{authorities, certificate, key}, name: name, log: log}
	c.seen = c.files.stat()
	var err error
	c.proof, err = c.files.read(name)
	return c, err
}

// Reread reads the files whether they have changed or not. With an error the old
// credentials stay.
func (c *Credentials) Reread() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reread(c.files.stat())
}

// Certificates are the node's own and that of the authority that signed it. When
// either expires, the others refuse this node.
func (c *Credentials) Certificates() (own, authority *x509.Certificate) {
	p := c.current()
	return p.leaf(), p.authority
}

// current is what a connection that begins now is made with. Files that cannot be
// used are warned of once, until they change again.
func (c *Credentials) current() proof {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.files.stat()
	if slices.EqualFunc(now[:], c.seen[:], sameFile) {
		return c.proof
	}
	if err := c.reread(now); err != nil {
		c.log.Warn("peer credentials not reread: the old ones stay", "not_after", c.proof.leaf().NotAfter, "err", err)
	} else {
		c.log.Info("peer credentials reread", "not_after", c.proof.leaf().NotAfter)
	}
	return c.proof
}

// reread notes that the files were read as they are now. The caller holds mu.
func (c *Credentials) reread(now [3]fs.FileInfo) error {
	c.seen = now
	p, err := c.files.read(c.name)
	if err == nil {
		c.proof = p
	}
	return err
}

// stat says how the files are; nil for one that cannot be reached.
func (f credentialFiles) stat() (infos [3]fs.FileInfo) {
	for i, path := range []string{f.authorities, f.certificate, f.key} {
		if info, err := os.Stat(path); err == nil {
			infos[i] = info
		}
	}
	return infos
}

// sameFile reports whether nobody has replaced or written a file between two looks.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (f credentialFiles) read(name string) (proof, error) {
	list, err := readAuthorities(f.authorities)
	if err != nil {
		return proof{}, fmt.Errorf("read peer authority %s: %w", f.authorities, err)
	}
	cert, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return proof{}, fmt.Errorf("read peer certificate: %w", err)
	}
	authorities := x509.NewCertPool()
	for _, authority := range list {
		authorities.AddCert(authority)
	}
	if err := check(cert.Leaf, authorities, name); err != nil {
		return proof{}, fmt.Errorf("check peer certificate %s: %w", f.certificate, err)
	}
	return proof{authority: signer(cert.Leaf, list), config: &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		RootCAs:      authorities,
		ClientCAs:    authorities,
		ClientAuth:   tls.RequireAndVerifyClientCert,

		// Each connection proves itself; they are few and live long.
		SessionTicketsDisabled: true,
	}}, nil
}

// signer is the one of the authorities that signed cert; of several the one that is
// valid for longest. A certificate that is among them is its own.
func signer(cert *x509.Certificate, authorities []*x509.Certificate) *x509.Certificate {
	var found *x509.Certificate
	for _, authority := range authorities {
		if cert.CheckSignatureFrom(authority) == nil && (found == nil || authority.NotAfter.After(found.NotAfter)) {
			found = authority
		}
	}
	return cmp.Or(found, cert)
}

// readAuthorities reads the certificates of a file, all of them: a pool takes what
// it can read, and would forget the last authority of a file that is half written.
func readAuthorities(path string) ([]*x509.Certificate, error) {
	rest, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var authorities []*x509.Certificate
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s in it, want certificates", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		authorities = append(authorities, cert)
	}
	switch {
	case strings.Contains(string(rest), "-----BEGIN"):
		return nil, errors.New("it ends within a certificate")
	case len(authorities) == 0:
		return nil, errors.New("no certificate in it")
	}
	return authorities, nil
}

// check reports why nodes with these authorities would not take cert for that of the
// node name.
func check(cert *x509.Certificate, authorities *x509.CertPool, name string) error {
	if !slices.Contains(cert.DNSNames, name) {
		return fmt.Errorf("it is that of %s, and this node is %s", strings.Join(cert.DNSNames, ", "), name)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := cert.Verify(x509.VerifyOptions{Roots: authorities, KeyUsages: []x509.ExtKeyUsage{usage}})
		var invalid x509.CertificateInvalidError
		expired := errors.As(err, &invalid) && invalid.Reason == x509.Expired
		if err != nil && !expired {
			return err
		}
	}
	return nil
}
