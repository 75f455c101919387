package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var discard = slog.New(slog.DiscardHandler)

// authority makes one for a test.
func authority(t *testing.T) KeyPair {
	t.Helper()
	ca, err := NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// credentials are those of a node with a certificate of ca for name.
func credentials(t *testing.T, ca KeyPair, name string, hosts ...string) *Credentials {
	t.Helper()
	return credentialsOf(t, time.Now(), ca, name, hosts...)
}

// credentialsOf is credentials with a certificate made then.
func credentialsOf(t *testing.T, then time.Time, ca KeyPair, name string, hosts ...string) *Credentials {
	t.Helper()
	pair, err := NewCertificate(ca, name, hosts, then)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := LoadCredentials(file("ca", ca.Certificate), file("cert", pair.Certificate), file("key", pair.Key), name, discard)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTLS(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	for _, c := range []struct {
		name   string
		n1, n2 *Credentials
		ok     bool
	}{
		{"both of one authority", credentials(t, ours, "n1"), credentials(t, ours, "n2"), true},
		{"another name among the hosts", credentials(t, ours, "n1"), credentials(t, ours, "other", "n2", "10.0.0.1"), true},
		{"who dials is of another authority", credentials(t, theirs, "n1"), credentials(t, ours, "n2"), false},
		{"who dials has the name of another", credentials(t, ours, "n3"), credentials(t, ours, "n2"), false},
		{"who answers has the name of another", credentials(t, ours, "n1"), credentials(t, ours, "n3"), false},
		{"who answers has a pattern for a name", credentials(t, ours, "n1"), credentials(t, ours, "n3", "*"), false},
		{"who dials has no TLS", nil, credentials(t, ours, "n2"), false},
		{"who answers has no TLS", credentials(t, ours, "n1"), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n2 := start(t, Config{Name: "n2", Credentials: c.n2}, func(p *Port) { p.Handle(MethodPropose, echo) })
			n1 := start(t, Config{Name: "n1", Credentials: c.n1}, nil)
			answer, err := n1.Call(t.Context(), n2.Self(), MethodPropose, []byte("x"))
			if c.ok && (err != nil || string(answer) != "n1:x") {
				t.Errorf("call: got %q, %v, want n1:x", answer, err)
			}
			if !c.ok && !errors.Is(err, ErrNotSent) {
				t.Errorf("call: got %q, %v, want ErrNotSent", answer, err)
			}
			if conn, err := n1.Raft(0).Dial(n2.Self().RaftAddress(), patience); err == nil {
				conn.Close()
				if !c.ok {
					t.Error("dial for raft: got a connection")
				}
			}
		})
	}
}

// What is wrong with a connection is told in words that do not change from try to
// try.
func TestReason(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	good := credentials(t, ours, "n1")
	longAgo := time.Now().AddDate(-2*nodeYears, 0, 0)
	for _, c := range []struct {
		name string
		n2   *Credentials
		want string
	}{
		{"another authority", credentials(t, theirs, "n2"), "its certificate is not of this node's authority"},
		{"another name", credentials(t, ours, "n3"), "its certificate has another name"},
		{"expired", credentialsOf(t, longAgo, ours, "n2"), "its certificate has expired or is not valid yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n2 := start(t, Config{Name: "n2", Credentials: c.n2}, nil)
			n1 := start(t, Config{Name: "n1", Credentials: good}, nil)
			_, err := n1.Call(t.Context(), n2.Self(), MethodFormation, nil)
			if got := Reason(err); got != c.want {
				t.Errorf("got %q of %v, want %q", got, err, c.want)
			}
		})
	}
	t.Run("this node's is refused", func(t *testing.T) {
		n2 := start(t, Config{Name: "n2", Credentials: credentials(t, ours, "n2")}, nil)
		n1 := start(t, Config{Name: "n1", Credentials: credentialsOf(t, longAgo, ours, "n1")}, nil)
		_, err := n1.Call(t.Context(), n2.Self(), MethodFormation, nil)
		if got := Reason(err); !strings.HasPrefix(got, "it refuses this node's certificate") {
			t.Errorf("got %q of %v, want that the certificate is refused", got, err)
		}
	})
	t.Run("refused by name", func(t *testing.T) {
		n2, n1 := start(t, Config{Name: "n2"}, nil), start(t, Config{Name: "n1"}, nil)
		_, err := n1.Call(t.Context(), Target{"n3", n2.Self().Address}, MethodFormation, nil)
		if got := Reason(err); !strings.Contains(got, refusedName.String()) || !errors.Is(err, ErrRefused) {
			t.Errorf("got %q of %v, want %q", got, err, refusedName)
		}
		if got, want := Reason(err), `(it is "n2" of cluster c)`; !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q at its end", got, want)
		}
		if got, want := (helloAnswer{name: "n2"}).who(), `it is "n2", of no cluster`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		n1 := start(t, Config{Name: "n1"}, nil)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = ln.Close()
		_, err = n1.Call(t.Context(), Target{"n2", ln.Addr().String()}, MethodFormation, nil)
		if got := Reason(err); !strings.Contains(got, "connection refused") || strings.Contains(got, "127.0.0.1") {
			t.Errorf("got %q of %v, want that the connection is refused", got, err)
		}
	})
}

// A pattern among the names of a certificate stands for nobody.
func TestPatternIsNoName(t *testing.T) {
	ca := authority(t)
	n2 := start(t, Config{Name: "n2.x", Credentials: credentials(t, ca, "n3", "*.x")}, func(p *Port) { p.Handle(MethodPropose, echo) })
	n1 := start(t, Config{Name: "n1", Credentials: credentials(t, ca, "n1")}, nil)
	if _, err := n1.Call(t.Context(), n2.Self(), MethodPropose, nil); !errors.Is(err, ErrNotSent) {
		t.Errorf("call: got %v, want ErrNotSent", err)
	}
}

// Without a certificate of the authority nothing is parsed, not even a hello:
// the port answers with TLS or not at all.
func TestNoCertificate(t *testing.T) {
	p := start(t, Config{Name: "n2", Credentials: credentials(t, authority(t), "n2")}, func(p *Port) { p.Handle(MethodPropose, echo) })
	good := hello{kind: kindRequests, cluster: "c", from: "n1", to: "n2"}.encode()
	good = appendFrame(good, frame{kind: frameRequest, method: MethodPropose, id: 1, payload: []byte("x")})

	plain, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write(good); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(plain); strings.Contains(string(got), magic) {
		t.Errorf("in the clear: got the answer %q", got)
	}

	bare, err := tls.Dial("tcp", p.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	bare.Write(good)
	if got, err := io.ReadAll(bare); len(got) > 0 || err == nil {
		t.Errorf("without a certificate: got %q, %v, want an error", got, err)
	}
}

func TestLoadCredentialsErrors(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	ca := authority(t)
	pair, err := NewCertificate(ca, "n1", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"ca": ca.Certificate, "cert": pair.Certificate, "key": pair.Key, "cakey": ca.Key, "other": authority(t).Certificate,
	} {
		if err := os.WriteFile(path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][4]string{
		{"none", "cert", "key", "n1"},
		{"key", "cert", "key", "n1"},
		{"ca", "none", "key", "n1"},
		{"ca", "cert", "cakey", "n1"},
		{"other", "cert", "key", "n1"},
		{"ca", "cert", "key", "n2"},
	} {
		if _, err := LoadCredentials(path(c[0]), path(c[1]), path(c[2]), c[3], discard); err == nil {
			t.Errorf("load %v: got nil, want an error", c)
		}
	}
}

func TestCertificateErrors(t *testing.T) {
	ca, other := authority(t), authority(t)
	node, err := NewCertificate(ca, "n1", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		authority KeyPair
		node      string
	}{
		"no authority":          {KeyPair{}, "n1"},
		"key of another":        {KeyPair{ca.Certificate, other.Key}, "n1"},
		"a node as authority":   {node, "n1"},
		"an address as name":    {ca, "10.0.0.1"},
		"certificate for a key": {KeyPair{ca.Certificate, ca.Certificate}, "n1"},
	} {
		if _, err := NewCertificate(c.authority, c.node, nil, time.Now()); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
}

// rotation is a node whose files a test replaces.
type rotation struct {
	t    *testing.T
	dir  string
	name string
	log  logBuffer
	port *Port
}

// rotate starts the node with a certificate of ca.
func rotate(t *testing.T, name string, ca KeyPair) *rotation {
	t.Helper()
	r := &rotation{t: t, dir: t.TempDir(), name: name}
	r.write("ca", ca.Certificate)
	r.certify(ca)
	c, err := LoadCredentials(r.path("ca"), r.path("cert"), r.path("key"), name, slog.New(slog.NewTextHandler(&r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.port = start(t, Config{Name: name, Credentials: c}, func(p *Port) { p.Handle(MethodPropose, echo) })
	return r
}

func (r *rotation) path(file string) string { return filepath.Join(r.dir, file) }

// write replaces a file as an operator should: at once.
func (r *rotation) write(file string, data []byte) {
	r.t.Helper()
	err := os.WriteFile(r.path("new"), data, 0o600)
	if err = errors.Join(err, os.Rename(r.path("new"), r.path(file))); err != nil {
		r.t.Fatal(err)
	}
}

// certify gives the node another certificate.
func (r *rotation) certify(ca KeyPair) {
	r.t.Helper()
	pair, err := NewCertificate(ca, r.name, nil, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	r.write("key", pair.Key)
	r.write("cert", pair.Certificate)
}

// call asks another node over a new connection.
func (r *rotation) call(to *rotation) error {
	r.port.closeConnections()
	to.port.closeConnections()
	return eventually(func() error {
		_, err := r.port.Call(r.t.Context(), to.port.Self(), MethodPropose, nil)
		return err
	})
}

// eventually is the error of the last of some tries: a connection may just be
// breaking, or a failed attempt be too fresh for the next.
func eventually(try func() error) (err error) {
	for range 3 {
		if err = try(); err == nil {
			return nil
		}
		time.Sleep(redialAfter)
	}
	return err
}

// Authority and certificates are replaced one after the other on nodes that run, and
// each new connection is made with what is there then.
func TestCredentialsAreReplaced(t *testing.T) {
	before, after := authority(t), authority(t)
	n1, n2 := rotate(t, "n1", before), rotate(t, "n2", before)
	both := slices.Concat(before.Certificate, after.Certificate)
	for _, step := range []struct {
		name string
		do   func()
		want bool // the nodes reach each other
	}{
		{"as they began", func() {}, true},
		{"n1 believes both", func() { n1.write("ca", both) }, true},
		{"n2 believes both", func() { n2.write("ca", both) }, true},
		{"n1 has a new certificate", func() { n1.certify(after) }, true},
		{"n2 has a new certificate", func() { n2.certify(after) }, true},
		{"n1 believes the new one only", func() { n1.write("ca", after.Certificate) }, true},
		{"n2 believes the new one only", func() { n2.write("ca", after.Certificate) }, true},
		{"n2 goes back, alone", func() { n2.write("ca", before.Certificate); n2.certify(before) }, false},
	} {
		step.do()
		for _, err := range []error{n1.call(n2), n2.call(n1)} {
			if (err == nil) != step.want {
				t.Fatalf("%s: got %v, want reached: %v\n%s%s", step.name, err, step.want, &n1.log, &n2.log)
			}
		}
	}
}

// Files that cannot be used change nothing, and are told of once.
func TestCredentialsThatCannotBeUsed(t *testing.T) {
	ca, other := authority(t), authority(t)
	for name, spoil := range map[string]func(r *rotation){
		"certificate of another authority": func(r *rotation) { r.certify(other) },
		"certificate of another node":      func(r *rotation) { r.name = "n3"; r.certify(ca) },
		"no certificate":                   func(r *rotation) { r.write("cert", nil) },
		"key of another":                   func(r *rotation) { r.write("key", ca.Key) },
		"certificate is gone":              func(r *rotation) { os.Remove(r.path("cert")) },
		"authority is gone":                func(r *rotation) { os.Remove(r.path("ca")) },
		"half an authority": func(r *rotation) {
			r.write("ca", append(slices.Clone(ca.Certificate), other.Certificate[:len(other.Certificate)/2]...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n1, n2 := rotate(t, "n1", ca), rotate(t, "n2", ca)
			spoil(n2)
			for range 2 {
				if err := errors.Join(n1.call(n2), n2.call(n1)); err != nil {
					t.Errorf("call: got %v, want nil", err)
				}
			}
			log := n2.log.String()
			if n := strings.Count(log, "not reread"); n < 1 || n > 2 { // key and certificate are two changes
				t.Errorf("got %d warnings, want one\n%s", n, log)
			}
			if err := n2.port.config.Credentials.Reread(); err == nil {
				t.Error("reread: got nil, want an error")
			}
			n2.name = "n2"
			n2.write("ca", ca.Certificate)
			n2.certify(ca)
			if err := n1.call(n2); err != nil || !strings.Contains(n2.log.String(), "peer credentials reread") {
				t.Errorf("mended: got %v and the log\n%s", err, n2.log.String())
			}
		})
	}
}

// TestCertificatesInForce: of several authorities the one counts that signed.
func TestCertificatesInForce(t *testing.T) {
	old, next := authority(t), authority(t)
	r := rotate(t, "n1", old)
	r.write("ca", slices.Concat(old.Certificate, next.Certificate))
	for _, ca := range []KeyPair{old, next} {
		r.certify(ca)
		want, _, err := ca.parse()
		if err != nil {
			t.Fatal(err)
		}
		own, signer := r.port.config.Credentials.Certificates()
		if own.DNSNames[0] != "n1" || !signer.Equal(want) {
			t.Errorf("got %v by %v, want n1 by %v", own.DNSNames, signer.SerialNumber, want.SerialNumber)
		}
	}
}
