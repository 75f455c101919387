package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// LoadTLS reads what `holdfast cert` wrote, as PEM files: the certificate of the
// cluster's authority, and certificate and key of this node. Both ends of a
// connection must show a certificate of that authority; names are checked with
// the hello. It fails for a certificate that the other nodes would refuse, unless
// all that is wrong is the time, which may be that of the clock.
func LoadTLS(caFile, certFile, keyFile, name string) (*tls.Config, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read peer authority: %w", err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read peer authority %s: %w", caFile, errors.New("no certificate in it"))
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read peer certificate: %w", err)
	}
	if err := check(cert.Leaf, authority, name); err != nil {
		return nil, fmt.Errorf("check peer certificate %s: %w", certFile, err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		RootCAs:      authority,
		ClientCAs:    authority,
		ClientAuth:   tls.RequireAndVerifyClientCert,

		// Each connection proves itself; they are few and live long.
		SessionTicketsDisabled: true,
	}, nil
}

// check reports why the other nodes would not take cert for that of the node name.
func check(cert *x509.Certificate, authority *x509.CertPool, name string) error {
	if !slices.Contains(cert.DNSNames, name) {
		return fmt.Errorf("it is that of %s, and this node is %s", strings.Join(cert.DNSNames, ", "), name)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := cert.Verify(x509.VerifyOptions{Roots: authority, KeyUsages: []x509.ExtKeyUsage{usage}})
		var invalid x509.CertificateInvalidError
		expired := errors.As(err, &invalid) && invalid.Reason == x509.Expired
		if err != nil && !expired {
			return err
		}
	}
	return nil
}
