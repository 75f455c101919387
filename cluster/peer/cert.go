package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// How long certificates are valid.
const (
	authorityYears = 10
	nodeYears      = 5
)

// backdate makes a certificate valid on machines whose clocks are behind.
const backdate = 24 * time.Hour

// KeyPair is a certificate and its key, both PEM.
type KeyPair struct{ Certificate, Key []byte }

// NewAuthority makes the authority of a cluster: ECDSA P-256, valid for ten
// years, for certificates of nodes only.
func NewAuthority(now time.Time) (KeyPair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "holdfast peers"},
		NotAfter:              now.AddDate(authorityYears, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	return issue(template, nil, nil, now)
}

// NewCertificate makes the certificate of the node name, valid for five years in
// both directions. Hosts are further DNS names or addresses to put into it;
// whoever has the certificate may speak for a node of such a name.
func NewCertificate(authority KeyPair, name string, hosts []string, now time.Time) (KeyPair, error) {
	ca, caKey, err := authority.parse()
	if err != nil {
		return KeyPair{}, fmt.Errorf("read authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{name},
		NotAfter:    now.AddDate(nodeYears, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if err := template.VerifyHostname(name); err != nil {
		return KeyPair{}, fmt.Errorf("check name %q: it cannot be that of a host: %w", name, err)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return issue(template, ca, caKey, now)
}

// issue signs template with the key of ca; with its own if ca is nil.
func issue(template, ca *x509.Certificate, caKey *ecdsa.PrivateKey, now time.Time) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, fmt.Errorf("make key: %w", err)
	}
	if ca == nil {
		ca, caKey = template, key
	}
	template.NotBefore = now.Add(-backdate)
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126)); err != nil {
		return KeyPair{}, fmt.Errorf("make serial number: %w", err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign certificate: %w", err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode key: %w", err)
	}
	return KeyPair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes}),
	}, nil
}

// parse reads what issue made.
func (p KeyPair) parse() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certBlock, _ := pem.Decode(p.Certificate)
	keyBlock, _ := pem.Decode(p.Key)
	if certBlock == nil || keyBlock == nil {
		return nil, nil, errors.New("no PEM in it")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, err
	}
	if !cert.IsCA {
		return nil, nil, errors.New("it is not the certificate of an authority")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("key is a %T, want ECDSA", parsed)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, errors.New("certificate and key do not belong together")
	}
	return cert, key, nil
}
