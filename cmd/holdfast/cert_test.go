package main

import (
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.internal/cluster/peer"
)

func TestCert(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	path := func(name string) string { return filepath.Join(dir, name) }
	if got := command(t, exitNo, "cert", "node", "n1", "--dir", dir); !strings.Contains(got, "holdfast cert ca") {
		t.Errorf("node before ca: got %q, want what to do first", got)
	}
	if got, want := command(t, 0, "cert", "ca", "--dir", dir), "certificate "+path("ca.pem")+"\nkey         "+path("ca-key.pem")+"\n"; got != want {
		t.Errorf("ca: got %q, want %q", got, want)
	}
	command(t, 0, "cert", "node", "n1", "--dir", dir, "--host", "db.example", "--host", "10.0.0.1", "--json")
	if _, err := peer.LoadCredentials(path("ca.pem"), path("n1.pem"), path("n1-key.pem"), "n1", slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("load: got %v, want nil", err)
	}
	for _, name := range []string{"ca.pem", "ca-key.pem", "n1.pem", "n1-key.pem"} {
		info, err := os.Stat(path(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s: got mode %v, want 0600", name, info.Mode())
		}
	}
	ca, node := certificate(t, path("ca.pem")), certificate(t, path("n1.pem"))
	for _, c := range []struct {
		cert  *x509.Certificate
		years int
	}{{ca, 10}, {node, 5}} {
		if now := time.Now(); c.cert.NotAfter.Before(now.AddDate(c.years, 0, -1)) || c.cert.NotAfter.After(now.AddDate(c.years, 0, 1)) {
			t.Errorf("%s: got valid until %v, want %d years", c.cert.Subject, c.cert.NotAfter, c.years)
		}
	}
	if !slices.Equal(node.DNSNames, []string{"n1", "db.example"}) || len(node.IPAddresses) != 1 {
		t.Errorf("node: got names %v and %v, want n1, db.example and 10.0.0.1", node.DNSNames, node.IPAddresses)
	}
}

// Neither command replaces a file, and one that fails leaves none.
func TestCertReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	command(t, 0, "cert", "ca", "--dir", dir)
	before := certificate(t, filepath.Join(dir, "ca.pem"))
	command(t, exitNo, "cert", "ca", "--dir", dir)
	command(t, exitNo, "cert", "node", "ca", "--dir", dir)
	if !before.Equal(certificate(t, filepath.Join(dir, "ca.pem"))) {
		t.Error("ca.pem: got another certificate, want the first")
	}
	writeFile(t, filepath.Join(dir, "n1.pem"), "mine")
	command(t, exitNo, "cert", "node", "n1", "--dir", dir)
	if _, err := os.Stat(filepath.Join(dir, "n1-key.pem")); err == nil {
		t.Error("after a failure: got n1-key.pem, want no file")
	}
	command(t, exitUsage, "cert", "node", "a/b", "--dir", dir)
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("%s: got no PEM", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
