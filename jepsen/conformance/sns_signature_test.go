package conformance

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // SignatureVersion 1 is defined with SHA-1
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"strings"
	"testing"
)

// TestSignatures verifies envelopes as consumers do (SNS developer guide,
// "Verifying the signatures of Amazon SNS messages"; AWS recording
// test_publish_sqs_verify_signature).
func TestSignatures(t *testing.T) {
	var acts []act
	for _, version := range []string{"1", "2"} {
		acts = append(acts, act{id: "version " + version, play: func(s *stage) {
			g := s.recorded("test_publish_sqs_verify_signature[" + version + "]")
			topic, queueURL := s.topic("SignatureVersion", version), s.queue()
			s.subscribe(topic, queueURL)
			s.publish(topic, "test signature value with attributes", messageAttributes(in{"attr1": number("1")}))
			m := s.one(queueURL, all)
			s.verify(s.unwrap(m), version)
			s.change(queueURL, handle(m), 0)
			again := s.one(queueURL, all) // and it is rendered alike again
			if again.text("Body") != m.text("Body") {
				s.Errorf("got\n%s\nthen\n%s", m.text("Body"), again.text("Body"))
			}
			members, _ := m.at("Attributes").(map[string]any)
			members["ApproximateReceiveCount"] = "1"
			g.same("messages", map[string]any{"Messages": []any{map[string]any(m)}, "ResponseMetadata": map[string]any{"HTTPStatusCode": float64(200)}})
			s.publish(topic, "two\nlines, “é”", in{"Subject": "about <this>"})
			s.delete(queueURL, handle(again))
			s.verify(s.envelope(queueURL), version)
		}})
	}
	acts = append(acts, act{id: "change", title: "the version is that of the publish", play: func(s *stage) {
		topic, queueURL, _ := s.subscribed()
		s.publish(topic, "one")
		s.setTopic(topic, "SignatureVersion", "2")
		s.publish(topic, "two")
		for range 2 {
			e := s.envelope(queueURL)
			s.verify(e, map[string]string{"one": "1", "two": "2"}[e.text("Message")])
		}
	}})
	perform(t, acts)
}

// verify checks the signature of an envelope with the certificate that it names.
func (s *stage) verify(e tree, version string) {
	s.Helper()
	if got := e.text("SignatureVersion"); got != version {
		s.Errorf("SignatureVersion: got %s, want %s", got, version)
	}
	var text strings.Builder
	for _, name := range []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"} {
		if value, ok := e[name].(string); ok {
			text.WriteString(name + "\n" + value + "\n")
		}
	}
	signature, err := base64.StdEncoding.DecodeString(e.text("Signature"))
	if err != nil {
		s.Fatal(err)
	}
	v1, v2 := sha1.Sum([]byte(text.String())), sha256.Sum256([]byte(text.String())) //nolint:gosec // see above
	hash, digest := crypto.SHA1, v1[:]
	if version == "2" {
		hash, digest = crypto.SHA256, v2[:]
	}
	if err := rsa.VerifyPKCS1v15(s.certificateKey(e.text("SigningCertURL")), hash, digest, signature); err != nil {
		s.Errorf("the signature of %q: %v", text.String(), err)
	}
}

// certificateKey fetches the certificate, from the broker under test wherever the
// URL leads, and returns its key.
func (s *stage) certificateKey(url string) *rsa.PublicKey {
	s.Helper()
	_, name, ok := strings.Cut(url, "/SimpleNotificationService-")
	if !ok {
		s.Fatalf("the certificate is at %q", url)
	}
	response, err := client.Get(s.endpoint + "/SimpleNotificationService-" + name)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		s.Fatalf("%s: %s %v", url, response.Status, err)
	}
	block, _ := pem.Decode(body)
	if block == nil {
		s.Fatalf("%s: got %q, want a certificate", url, body)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		s.Fatal(err)
	}
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	if !ok || certificate.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
		s.Fatalf("%s: the certificate has key %T and usage %v", url, certificate.PublicKey, certificate.KeyUsage)
	}
	return key
}
