package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// mtu is that of the hosts' devices: large, since every packet costs the router
// two system calls.
const mtu = 32 << 10

// Network is a network of hosts whose links can be cut, slowed and made to lose
// packets, each way on its own. Each host is a network namespace with one TUN
// device; the packets between them are carried by this process. Nothing of it can
// be seen outside, and nothing is left when the processes are gone.
type Network struct {
	hosts  []*Host
	router *router
}

// Host is one host of a Network.
type Host struct {
	address   netip.Addr
	namespace *os.File
	device    *os.File
}

// NewNetwork makes a network of so many hosts, at most 250. It returns an error
// that wraps ErrUnavailable where that cannot be done: it needs root and
// /dev/net/tun. Seed decides which packets are lost. The caller must Close it.
func NewNetwork(hosts int, seed uint64) (*Network, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("make network: not root: %w", ErrUnavailable)
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return nil, fmt.Errorf("make network: %w: %w", ErrUnavailable, err)
	}
	n := &Network{}
	devices := map[netip.Addr]io.ReadWriteCloser{}
	for i := range hosts {
		h := &Host{address: netip.AddrFrom4([4]byte{10, 78, 0, byte(i + 1)})}
		n.hosts = append(n.hosts, h)
		if err := h.open(); err != nil {
			for _, h := range n.hosts {
				h.close()
			}
			return nil, fmt.Errorf("make network: %w: %w", ErrUnavailable, err)
		}
		devices[h.address] = h.device
	}
	n.router = newRouter(devices, seed)
	return n, nil
}

// Host returns a host by number, from 0 on.
func (n *Network) Host(i int) *Host { return n.hosts[i] }

// Set says how the link from one host to another is. The way back is a link of
// its own.
func (n *Network) Set(from, to *Host, l Link) { n.router.set(from.address, to.address, l) }

// Isolate cuts the links between h and others, both ways.
func (n *Network) Isolate(h *Host, others ...*Host) {
	for _, o := range others {
		n.Set(h, o, Link{Cut: true})
		n.Set(o, h, Link{Cut: true})
	}
}

// Heal makes all links good.
func (n *Network) Heal() { n.router.heal() }

// Close takes the network away. Processes in it lose all connections.
func (n *Network) Close() {
	n.router.close()
	for _, h := range n.hosts {
		h.close()
	}
}

// Address is the IP address of the host.
func (h *Host) Address() string { return h.address.String() }

// Dial connects to an address of the network as a client on this host. It is for
// http.Transport.
func (h *Host) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = h.inside(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens at an address of the host.
func (h *Host) Listen(network, address string) (l net.Listener, err error) {
	err = h.inside(func() error {
		l, err = net.Listen(network, address)
		return err
	})
	return l, err
}

// inside runs f in a thread that is on the host: what it opens and starts is on
// the host for ever.
func (h *Host) inside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err == nil {
			defer func() { _ = home.Close() }()
			err = unix.Setns(int(h.namespace.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- fmt.Errorf("enter host %s: %w", h.address, err)
			return // the thread ends with the goroutine
		}
		err = f()
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// open makes the namespace and the device of the host.
func (h *Host) open() error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("make network namespace: %w", err)
			return
		}
		var err error
		h.namespace, err = os.Open("/proc/thread-self/ns/net")
		done <- err
	}()
	if err := <-done; err != nil {
		return err
	}
	return h.inside(func() error {
		if err := h.openDevice(); err != nil {
			return err
		}
		return h.configure()
	})
}

func (h *Host) openDevice() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq("tun0")
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make device: %w", err), unix.Close(fd))
	}
	h.device = os.NewFile(uintptr(fd), "tun0")
	return nil
}

// configure gives the device its address, and takes it and lo up.
func (h *Host) configure() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("configure device: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	set := func(device string, request uint, value func(*unix.Ifreq) error) {
		r, newErr := unix.NewIfreq(device)
		err = errors.Join(err, newErr)
		if err == nil {
			err = value(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(socket, request, r)
		}
	}
	up := func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP); return nil }
	set("lo", unix.SIOCSIFFLAGS, up)
	set("tun0", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(h.address.AsSlice()) })
	set("tun0", unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 0}) })
	set("tun0", unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(mtu); return nil })
	set("tun0", unix.SIOCSIFFLAGS, up)
	if err != nil {
		return fmt.Errorf("configure device: %w", err)
	}
	return nil
}

func (h *Host) close() {
	for _, f := range []*os.File{h.device, h.namespace} {
		if f != nil {
			_ = f.Close()
		}
	}
}
