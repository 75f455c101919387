package fault

import (
	"container/heap"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// Link is what happens to packets from one host to another. The zero value is a
// good link.
type Link struct {
	Cut    bool          // they are lost
	Loss   float64       // this part of them is lost
	Delay  time.Duration // they arrive that much later
	Jitter time.Duration // and up to that much more, in any order
}

// maxPacket bounds the packets that are read.
const maxPacket = 64 << 10

// router carries packets between the devices of hosts.
type router struct {
	devices map[netip.Addr]io.ReadWriteCloser
	readers sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	links  map[[2]netip.Addr]Link
	late   latePackets
	wake   chan struct{} // an earlier packet is in late, or the router is closed
	closed bool
}

// latePacket is one on its way over a link with a delay.
type latePacket struct {
	due   time.Time
	to    io.Writer
	bytes []byte
}

type latePackets []latePacket

func (p latePackets) Len() int           { return len(p) }
func (p latePackets) Less(i, j int) bool { return p[i].due.Before(p[j].due) }
func (p latePackets) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *latePackets) Push(x any)        { *p = append(*p, x.(latePacket)) }
func (p *latePackets) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// newRouter starts to carry IPv4 packets between devices, each of which is the
// host with its address. Seed decides which packets are lost.
func newRouter(devices map[netip.Addr]io.ReadWriteCloser, seed uint64) *router {
	r := &router{
		devices: devices, links: map[[2]netip.Addr]Link{}, wake: make(chan struct{}, 1),
		random: rand.New(rand.NewPCG(seed, 0)),
	}
	for from, device := range devices {
		r.readers.Go(func() { r.read(from, device) })
	}
	r.readers.Go(r.deliverLate)
	return r
}

// read carries what a host sends, until its device is closed.
func (r *router) read(from netip.Addr, device io.Reader) {
	packet := make([]byte, maxPacket)
	for {
		n, err := device.Read(packet)
		if err != nil {
			return
		}
		if n >= 20 && packet[0]>>4 == 4 {
			r.carry(from, netip.AddrFrom4([4]byte(packet[16:20])), packet[:n])
		}
	}
}

func (r *router) carry(from, to netip.Addr, packet []byte) {
	device := r.devices[to]
	if device == nil {
		return
	}
	r.mu.Lock()
	l := r.links[[2]netip.Addr{from, to}]
	lost := l.Cut || l.Loss > 0 && r.random.Float64() < l.Loss
	delay := l.Delay
	if l.Jitter > 0 {
		delay += time.Duration(r.random.Int64N(int64(l.Jitter)))
	}
	if !lost && delay > 0 {
		heap.Push(&r.late, latePacket{time.Now().Add(delay), device, append([]byte(nil), packet...)})
		r.signal()
	}
	r.mu.Unlock()
	if !lost && delay == 0 {
		_, _ = device.Write(packet) // a full queue loses packets, as in life
	}
}

func (r *router) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// deliverLate delivers packets when they are due, until the router is closed.
func (r *router) deliverLate() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait, closed := r.deliverDue()
		if closed {
			return
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-r.wake:
		}
	}
}

// deliverDue delivers what is due, and says how long it is until the next.
func (r *router) deliverDue() (wait time.Duration, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.late) > 0 {
		if wait := time.Until(r.late[0].due); wait > 0 {
			return wait, r.closed
		}
		p := heap.Pop(&r.late).(latePacket)
		_, _ = p.to.Write(p.bytes)
	}
	return time.Hour, r.closed
}

// set says how the link from one host to another is, one way.
func (r *router) set(from, to netip.Addr, l Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links[[2]netip.Addr{from, to}] = l
}

// heal makes all links good.
func (r *router) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.links)
}

// close closes the devices and ends the router.
func (r *router) close() {
	r.mu.Lock()
	r.closed = true
	r.signal()
	r.mu.Unlock()
	for _, device := range r.devices {
		_ = device.Close()
	}
	r.readers.Wait()
}
