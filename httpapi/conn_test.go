package httpapi_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi"
	"holdfast.internal/sqs"
)

// parkingBroker holds a receive until the test lets it go.
type parkingBroker struct {
	*stateBroker
	parked chan func() bool // the alive of each receive that came
	resume chan struct{}
}

func (b *parkingBroker) Receive(ctx context.Context, _ sqs.ReceiveMessage, _ time.Duration, alive func() bool) (cluster.Delivery, error) {
	b.parked <- alive
	select {
	case <-b.resume:
		return cluster.Delivery{}, nil
	case <-ctx.Done():
		return cluster.Delivery{}, ctx.Err()
	}
}

func newParkingBroker(state *stateBroker) *parkingBroker {
	return &parkingBroker{state, make(chan func() bool, 1), make(chan struct{})}
}

func servePark(t *testing.T, c httpapi.Config) (*endpoint, *parkingBroker) {
	t.Helper()
	state := newStateBroker()
	broker := newParkingBroker(state)
	return serveBroker(t, state, broker, c), broker
}

const longPoll = "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: 36\r\n\r\n" +
	`{"QueueUrl":"q","WaitTimeSeconds":1}`

// TestAlive asks about clients that wait, that send ahead, and that leave.
func TestAlive(t *testing.T) {
	cert, key := certificate(t)
	for _, config := range []httpapi.Config{{}, {CertFile: cert, KeyFile: key}} {
		t.Run(fmt.Sprintf("tls=%v", config.CertFile != ""), func(t *testing.T) {
			e, broker := servePark(t, config)
			client := e.dial(config.CertFile != "")
			defer client.Close()
			write(t, client, longPoll)
			alive := <-broker.parked
			if !alive() {
				t.Error("a client that waits counts as gone")
			}
			write(t, client, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
			if !eventually(func() bool { return alive() }) {
				t.Error("a client that sent ahead counts as gone")
			}
			broker.resume <- struct{}{}
			r := bufio.NewReader(client)
			for _, want := range []string{"{}", `{"ok":true}`} {
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(body) != want {
					t.Errorf("got %s, want %s", body, want)
				}
			}

			write(t, client, longPoll)
			alive = <-broker.parked
			client.Close()
			if !eventually(func() bool { return !alive() }) {
				t.Error("a client that left counts as there")
			}
			broker.resume <- struct{}{}
		})
	}
}

// eventually waits for what another thread of the kernel or a client does.
func eventually(is func() bool) bool {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if is() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func write(t testing.TB, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func (e *endpoint) dial(secure bool) net.Conn {
	e.t.Helper()
	if !secure {
		return dial(e.t, e.addr)
	}
	client, err := tls.Dial("tcp", e.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		e.t.Fatal(err)
	}
	return client
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	client, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// shortTimeout is one that a test waits for. What is to come within it is sent before
// the port is served, or a machine that is slow would be late.
const shortTimeout = 500 * time.Millisecond

// TestLongPollOutlivesReadTimeout parks a receive for longer than a request may
// take to come in: the client still counts as there, and gets its answer.
func TestLongPollOutlivesReadTimeout(t *testing.T) {
	ln, state := listen(t), newStateBroker()
	client := dial(t, ln.Addr().String())
	defer client.Close()
	write(t, client, longPoll)
	broker := newParkingBroker(state)
	serveOn(t, ln, state, broker, httpapi.Config{ReadTimeout: shortTimeout, WriteTimeout: shortTimeout})
	alive := <-broker.parked
	parked := time.Now()
	eventually(func() bool { return time.Since(parked) > shortTimeout })
	if !alive() {
		t.Error("the client counts as gone")
	}
	broker.resume <- struct{}{}
	r, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if body, err := io.ReadAll(r.Body); err != nil || r.StatusCode != 200 || string(body) != "{}" {
		t.Errorf("got %d %s, %v, want 200 {}", r.StatusCode, body, err)
	}
}

// TestSlowRequestEnds sends requests that never end.
func TestSlowRequestEnds(t *testing.T) {
	ln, broker := listen(t), newStateBroker()
	clients := map[string]net.Conn{}
	for _, text := range []string{"", "POST / HT", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"} {
		clients[text] = dial(t, ln.Addr().String())
		write(t, clients[text], text)
	}
	serveOn(t, ln, broker, broker, httpapi.Config{ReadTimeout: shortTimeout, IdleTimeout: shortTimeout})
	for text, client := range clients {
		if err := client.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil { // half of what is usual
			t.Fatal(err)
		}
		if _, err := io.ReadAll(client); err != nil {
			t.Errorf("%q: got %v, want the end of the connection", text, err)
		}
		client.Close()
	}
}

// TestAbort breaks everything off at once, also a receive that is parked.
func TestAbort(t *testing.T) {
	e, broker := servePark(t, httpapi.Config{})
	client := e.dial(false)
	defer client.Close()
	write(t, client, longPoll)
	<-broker.parked
	e.server.Abort()
	if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("got %d bytes, %v, want a broken connection", n, err)
	}
	if c, err := net.Dial("tcp", e.addr); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

// TestShutdownGivesUp shuts down with a receive that does not end.
func TestShutdownGivesUp(t *testing.T) {
	e, broker := servePark(t, httpapi.Config{})
	client := e.dial(false)
	defer client.Close()
	write(t, client, longPoll)
	<-broker.parked
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := e.server.Shutdown(ctx); err == nil {
		t.Error("got no error")
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("got %d bytes, %v, want a broken connection", n, err)
	}
}

// certificate makes a certificate for the tests, and returns its files.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
