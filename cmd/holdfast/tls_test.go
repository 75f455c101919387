package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.internal/wal"
)

// A certificate is reread on SIGHUP, and a bad one leaves the old in place.
func TestCertificateIsReread(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, certFile, keyFile, 1)
	s := serve(t, t.TempDir(), "--tls-cert", certFile, "--tls-key", keyFile)
	if !strings.HasPrefix(s.API, "https://") {
		t.Fatalf("got API %s, want https", s.API)
	}
	if got := servedSerial(t, s); got != 1 {
		t.Errorf("got certificate %d, want 1", got)
	}

	writeFile(t, certFile, "no certificate")
	hangUp(t)
	waitForLog(t, s, `"level":"WARN","msg":"certificate not reread: the old one stays","certificate":"api","not_after":"`)
	if got := servedSerial(t, s); got != 1 {
		t.Errorf("after a bad file: got certificate %d, want 1", got)
	}

	writeCertificate(t, certFile, keyFile, 2)
	hangUp(t)
	waitForLog(t, s, "certificate reread")
	if got := servedSerial(t, s); got != 2 {
		t.Errorf("got certificate %d, want 2", got)
	}
}

// A hangup while the node starts waits until it has: it does not end the process.
func TestHangupDuringStart(t *testing.T) {
	seen := make(chan os.Signal, 1) // keeps a hangup from ending the tests
	signal.Notify(seen, syscall.SIGHUP)
	defer signal.Stop(seen)
	hangsUp := writerFunc(func(line []byte) {
		if strings.Contains(string(line), "node started") {
			hangUp(t)
			<-seen
		}
	})
	data := t.TempDir()
	f := newServeFlags(t, "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--disk-reserve", "1MiB")
	b, err := startBroker(t.Context(), f, slog.New(slog.NewTextHandler(hangsUp, nil)))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.hangup:
	case <-time.After(patience):
		t.Error("the hangup was lost")
	}
	b.stop()
	if err := awaitUnlocked(filepath.Join(data, wal.StableFile)); err != nil {
		t.Errorf("wait for the end of the node: %v", err)
	}
}

// writerFunc is called with each line of a log.
type writerFunc func(line []byte)

func (w writerFunc) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}

// newServeFlags are the flags of a command line of serve.
func newServeFlags(t *testing.T, args ...string) *serveFlags {
	t.Helper()
	parser, g := newTestParser(t)
	if _, err := parser.Parse(append([]string{"serve"}, args...)); err != nil {
		t.Fatal(err)
	}
	return &g.Serve.serveFlags
}

// A member rereads what it proves itself with as well.
func TestPeerCertificateIsReread(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	command(t, 0, "cert", "ca", "--dir", dir)
	command(t, 0, "cert", "node", "n1", "--dir", dir)
	own := certificate(t, path("n1.pem"))
	s := serve(t, t.TempDir(), "--cluster", "n1=127.0.0.1:1,n2=127.0.0.1:2", "--peer", "127.0.0.2:0",
		"--peer-ca", path("ca.pem"), "--peer-cert", path("n1.pem"), "--peer-key", path("n1-key.pem"))
	hangUp(t)
	waitForLog(t, s, "certificate reread")
	writeFile(t, path("n1.pem"), "no certificate")
	hangUp(t)
	waitForLog(t, s, `"level":"WARN","msg":"certificate not reread: the old one stays","certificate":"peer","not_after":"`)
	metrics := get(t, http.DefaultClient, s.Admin+"/metrics", http.StatusOK)
	for name, cert := range map[string]*x509.Certificate{"peer": own, "peer-ca": certificate(t, path("ca.pem"))} {
		want := fmt.Sprintf("holdfast_certificate_not_after_seconds{certificate=%q} %v\n", name, float64(cert.NotAfter.Unix()))
		if !strings.Contains(metrics, want) {
			t.Errorf("got no metric %s", want)
		}
	}
}

// TestExpiryIsTold from 30 days before it on, or a third of a short validity.
func TestExpiryIsTold(t *testing.T) {
	begin, day := time.Unix(1_800_000_000, 0), 24*time.Hour
	for _, test := range []struct {
		validity, age time.Duration
		want          string // level; empty: nothing is said
	}{
		{365 * day, 334 * day, ""},
		{365 * day, 336 * day, "WARN"},
		{365 * day, 366 * day, "ERROR"},
		{6 * day, 3 * day, ""},
		{6 * day, 5 * day, "WARN"},
	} {
		var out bytes.Buffer
		c := namedCertificate{"peer", &x509.Certificate{NotBefore: begin, NotAfter: begin.Add(test.validity)}}
		tellExpiry([]namedCertificate{c}, begin.Add(test.age), slog.New(slog.NewTextHandler(&out, nil)))
		line := out.String()
		if test.want == "" && line != "" || !strings.Contains(line, test.want) || line != "" && !strings.Contains(line, "certificate=peer not_after=") {
			t.Errorf("valid for %v, after %v: got %q, want level %q", test.validity, test.age, line, test.want)
		}
	}
}

// Without a certificate a hangup ends the node in good order, as SIGTERM does.
func TestHangupEndsNode(t *testing.T) {
	s := serve(t, t.TempDir())
	hangUp(t)
	waitForLog(t, s, `"stopped"`)
	if code := s.stop(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
}

func TestCertificateIsMissing(t *testing.T) {
	none, data := filepath.Join(t.TempDir(), "none.pem"), filepath.Join(t.TempDir(), "data")
	out := command(t, exitNo, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--tls-cert", none, "--tls-key", none)
	if !strings.Contains(out, "none.pem") {
		t.Errorf("got %q, want the name of the file", out)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data folder was touched: %v", err)
	}
}

func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

func waitForLog(t *testing.T, s *served, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(s.log.String(), text) {
			return
		}
	}
	t.Fatalf("got no line with %q in %v", text, patience)
}

// servedSerial is the number of the certificate that the API shows.
func servedSerial(t *testing.T, s *served) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.API, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func writeCertificate(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	writeFile(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes})))
}
