package sqs

// names gives small numbers to names, so that a record of 64 bytes can refer to
// a MessageGroupId or to a queue. The zero name has id 0. A name is forgotten
// when it was released as often as it was used.
type names[K comparable] struct {
	ids     map[K]uint32
	entries []nameEntry[K] // of id n at n-1
	free    []uint32
}

type nameEntry[K comparable] struct {
	name K
	uses uint32
}

// use returns the id of a name and counts one more use of it.
func (n *names[K]) use(name K) uint32 {
	var none K
	if name == none {
		return 0
	}
	id, ok := n.ids[name]
	if !ok {
		id = n.add(name)
	}
	n.entries[id-1].uses++
	return id
}

func (n *names[K]) add(name K) uint32 {
	if n.ids == nil {
		n.ids = make(map[K]uint32)
	}
	if last := len(n.free) - 1; last >= 0 {
		id := n.free[last]
		n.free = n.free[:last]
		n.entries[id-1].name = name
		n.ids[name] = id
		return id
	}
	n.entries = append(n.entries, nameEntry[K]{name: name})
	id := uint32(len(n.entries))
	n.ids[name] = id
	return id
}

// retain counts one more use of an id that is in use.
func (n *names[K]) retain(id uint32) uint32 {
	if id != 0 {
		n.entries[id-1].uses++
	}
	return id
}

// release takes back one use of an id.
func (n *names[K]) release(id uint32) {
	if id == 0 {
		return
	}
	e := &n.entries[id-1]
	e.uses--
	if e.uses > 0 {
		return
	}
	delete(n.ids, e.name)
	*e = nameEntry[K]{}
	if len(n.ids) == 0 {
		*n = names[K]{} // a map never shrinks by itself
		return
	}
	n.free = append(n.free, id)
}

// name returns the name of an id that is in use.
func (n *names[K]) name(id uint32) K {
	if id == 0 {
		var none K
		return none
	}
	return n.entries[id-1].name
}

// lookup is name for an id that may not be in use.
func (n *names[K]) lookup(id uint32) K {
	if int(id) > len(n.entries) {
		id = 0
	}
	return n.name(id)
}
