package raftfsm

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // SignatureVersion 1 is defined with SHA-1
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// SigningKey signs SNS messages. All nodes have all keys, so that each of them
// renders a message alike.
type SigningKey struct {
	From        sqs.Time // messages that were published from this time on are signed with it
	Private     []byte   // RSA, PKCS #1
	Certificate []byte   // X.509, DER

	signer *rsa.PrivateKey // parsed; nil in a value that no Machine has seen
}

const (
	maxSigningKeys = 16
	signingKeyBits = 2048 // SNS developer guide, "Verifying the signatures of Amazon SNS messages"
	// signingKeyLife is how long a certificate is valid. Consumers verify messages
	// long after they were signed.
	signingKeyLife = 10 * 365 * 24 * time.Hour
)

// AddSigningKey adds a key for SNS messages, which is in use from the entry's time
// on. Key.From is of no interest.
type AddSigningKey struct {
	Key   SigningKey
	First bool // only if there is none yet; else nothing happens
}

// NewSigningKey makes a key with a certificate for the given hosts. It takes a
// fraction of a second.
func NewSigningKey(at sqs.Time, hosts []string) (SigningKey, error) {
	private, err := rsa.GenerateKey(rand.Reader, signingKeyBits)
	if err != nil {
		return SigningKey{}, fmt.Errorf("make signing key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return SigningKey{}, fmt.Errorf("make signing key: %w", err)
	}
	from := time.UnixMilli(int64(at)).UTC()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: hosts[0], Organization: []string{"Holdfast"}},
		NotBefore:    from.Add(-24 * time.Hour),
		NotAfter:     from.Add(signingKeyLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return SigningKey{}, fmt.Errorf("make certificate: %w", err)
	}
	return SigningKey{Private: x509.MarshalPKCS1PrivateKey(private), Certificate: certificate}, nil
}

// CertificateName is the last part of the URL of the key's certificate. It is
// another one for another certificate, because consumers keep what they fetched
// for ever.
func (k *SigningKey) CertificateName() string {
	sum := sha256.Sum256(k.Certificate)
	return "SimpleNotificationService-" + hex.EncodeToString(sum[:16]) + ".pem"
}

// CertificatePEM is the certificate as it is served.
func (k *SigningKey) CertificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate})
}

// CertificatePEM returns the certificate of that name, of any key there ever was.
func (s *Settings) CertificatePEM(name string) ([]byte, bool) {
	for i := range s.SigningKeys {
		if k := &s.SigningKeys[i]; k.CertificateName() == name {
			return k.CertificatePEM(), true
		}
	}
	return nil, false
}

// signingKeyAt is the newest key that held at t, or else the oldest; nil if there
// is none.
func (s *Settings) signingKeyAt(t sqs.Time) *SigningKey {
	for i := len(s.SigningKeys) - 1; i >= 0; i-- {
		if i == 0 || s.SigningKeys[i].From <= t {
			return &s.SigningKeys[i]
		}
	}
	return nil
}

// sign is the signature of a text, by the version that the topic had.
func (k *SigningKey) sign(text []byte, version byte) ([]byte, error) {
	if k.signer == nil {
		return nil, fmt.Errorf("sign message: %w", errNoSigner)
	}
	var hash crypto.Hash
	var sum []byte
	if version == 2 {
		digest := sha256.Sum256(text)
		hash, sum = crypto.SHA256, digest[:]
	} else {
		digest := sha1.Sum(text) //nolint:gosec // see above
		hash, sum = crypto.SHA1, digest[:]
	}
	signature, err := rsa.SignPKCS1v15(nil, k.signer, hash, sum) // the same each time
	if err != nil {
		return nil, fmt.Errorf("sign message: %w", err)
	}
	return signature, nil
}

func (m *Machine) addSigningKey(c AddSigningKey) error {
	s := *m.state.settings
	if c.First && len(s.SigningKeys) > 0 {
		return nil
	}
	key := c.Key
	key.From = m.state.now + 1 // what was published in this millisecond is signed by the key before
	if len(s.SigningKeys) == 0 {
		key.From = 0
	}
	if _, err := key.parse(); err != nil {
		// Not the library's words: they may be others in another program.
		return &SettingError{"sns-signing-key", "", "it is no RSA key with a certificate"}
	}
	keys := append([]SigningKey(nil), s.SigningKeys...)
	s.SigningKeys = append(keys[max(0, len(keys)-maxSigningKeys+1):], key)
	m.publish(s)
	return nil
}

// parse checks the key, and returns what signs.
func (k *SigningKey) parse() (*rsa.PrivateKey, error) {
	private, err := x509.ParsePKCS1PrivateKey(k.Private)
	if err != nil {
		return nil, fmt.Errorf("parse signing key: %w", err)
	}
	if _, err := x509.ParseCertificate(k.Certificate); err != nil {
		return nil, fmt.Errorf("parse certificate: %w", err)
	}
	return private, nil
}

// SNSHosts is what the URLs in SNS messages begin with, from a time on.
type SNSHosts struct {
	From    sqs.Time
	URL     string // of links to unsubscribe
	CertURL string // of certificates
}

const maxSNSHosts = 16

// noteHosts keeps what URLs in SNS messages begin with, so that messages that were
// published before a change are rendered as ever.
func (s *Settings) noteHosts(now sqs.Time) {
	current := SNSHosts{URL: s.PublicURL, CertURL: s.SNSCertURL}
	if current.URL == "" {
		current.URL = s.SNSURL
	}
	if current.CertURL == "" {
		current.CertURL = current.URL
	}
	last := len(s.SNSHosts) - 1
	if last >= 0 && s.SNSHosts[last].URL == current.URL && s.SNSHosts[last].CertURL == current.CertURL {
		return
	}
	if last >= 0 {
		current.From = now + 1
	}
	hosts := append([]SNSHosts(nil), s.SNSHosts...)
	s.SNSHosts = append(hosts[max(0, len(hosts)-maxSNSHosts+1):], current)
}

// hostsAt is what held at t.
func (s *Settings) hostsAt(t sqs.Time) SNSHosts {
	for i, hosts := range slices.Backward(s.SNSHosts) {
		if i == 0 || hosts.From <= t {
			return hosts
		}
	}
	return SNSHosts{}
}

func signingKeyFields(f *fields, k SigningKey) SigningKey {
	k.From = f.time(k.From)
	k.Private = append([]byte(nil), f.bytes(k.Private)...)
	k.Certificate = append([]byte(nil), f.bytes(k.Certificate)...)
	return k
}

func snsHostsFields(f *fields, h SNSHosts) SNSHosts {
	h.From = f.time(h.From)
	h.URL = f.str(h.URL)
	h.CertURL = f.str(h.CertURL)
	return h
}

func addSigningKeyFields(f *fields, c AddSigningKey) AddSigningKey {
	c.Key = signingKeyFields(f, c.Key)
	c.First = f.bool(c.First)
	return c
}

// envelopeOf is what is shown of a publish beside it, without a signature.
func (s *Settings) envelopeOf(stored *sns.Stored, id sns.SubscriptionID) sns.Envelope {
	at := sqs.Time(stored.At)
	hosts := s.hostsAt(at)
	e := sns.Envelope{Protocol: sns.SQS, SubscriptionID: id, URL: hosts.URL}
	if key := s.signingKeyAt(at); key != nil {
		e.SigningCertURL = hosts.CertURL + "/" + key.CertificateName()
	}
	return e
}
