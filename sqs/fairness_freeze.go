package sqs

import "encoding/binary"

// frozenTenant is what a tenant is besides its messages.
type frozenTenant struct {
	sentAt Time
	spent  uint64 // as it counts now
	noisy  bool
}

// freezeTenants copies the tenants, in the order of their ids from 1, and tells
// the processing time of the queue.
func (m *messages) freezeTenants(now Time) (frozen []frozenTenant, spent uint64) {
	if len(m.groups.entries) == 0 || m.fair == nil {
		return nil, 0
	}
	period := periodOf(now)
	frozen = make([]frozenTenant, 0, len(m.groups.entries))
	for i := range m.groups.entries {
		t := m.tenant(uint32(i + 1))
		frozen = append(frozen, frozenTenant{sentAt: t.sentAt, spent: decayed(t.spent, t.period, period), noisy: t.noisy})
	}
	return frozen, decayed(m.fair.spent, m.fair.period, period)
}

// appendTenants encodes the tenants in the order of their names. A queue without
// any has nothing to encode.
func (q *frozenQueue) appendTenants(dst []byte, groups *numbering[string]) []byte {
	if len(groups.names) == 0 {
		return dst
	}
	sorted := make([]frozenTenant, len(groups.names))
	for i, t := range q.tenants {
		if n := groups.numbers[i+1]; n != 0 {
			sorted[n-1] = t
		}
	}
	for _, t := range sorted {
		dst = appendTime(dst, t.sentAt)
		dst = binary.AppendUvarint(dst, t.spent)
		dst = appendBool(dst, t.noisy)
	}
	return binary.AppendUvarint(dst, q.spent)
}

// tenants reads the tenants of so many names, the first of which is that of
// none. It has the processing time of the queue.
func (d *decoder) tenants(names int, now Time) []frozenTenant {
	tenants := make([]frozenTenant, names)
	if names == 1 {
		return tenants
	}
	for i := 1; i < names && d.err == nil; i++ {
		tenants[i] = frozenTenant{sentAt: Time(d.number(uint64(now))), spent: d.number(maxTime), noisy: d.bool()}
	}
	tenants[0].spent = d.number(maxTime)
	return tenants
}

// thawTenants makes tenants what they were, after their messages have been put
// in.
func (m *messages) thawTenants(names []string, frozen []frozenTenant, now Time) {
	period := periodOf(now)
	for i, t := range frozen {
		id, ok := m.groups.ids[names[i]]
		if i == 0 || !ok {
			continue // a name of no message
		}
		live := m.tenant(id)
		live.sentAt, live.spent, live.period = t.sentAt, t.spent, period
		if t.noisy && m.waits(id) {
			m.fair.disturb(id)
		}
	}
	if m.fair != nil {
		m.fair.spent, m.fair.period = frozen[0].spent, period
	}
}
