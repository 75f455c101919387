package sns

import (
	"math/bits"
	"slices"
)

// A choice is the set of keys, as bits, that have been given a value in a part
// of a document, and of absent keys that have a value there which could belong
// to those chosen. A family is the set of choices, as bits, that are possible.
type (
	choice uint8
	family uint32
)

// without[k] is the family of all choices that lack key k.
var without = [maxFilterKeys]family{0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x0000ffff}

func single(c choice) family { return 1 << c }

// with adds the key to each choice.
func (f family) with(key int) family { return f&^without[key] | f&without[key]<<(1<<key) }

// part is what is known of an open part of the document, the root or an element
// of an array: the choices that take a value in it, and the one that takes none.
type part struct {
	element int32
	some    family
	none    choice
	array   int32 // the array in it that is open, -1 if none
	inside  family
	outside choice // what is there if none is taken from the array
}

func (f *part) all() family { return f.some | single(f.none) }

// take lets each choice have the key's value, or not.
func (f *part) take(key int) { f.some |= (f.all() & without[key]).with(key) }

// meet notes a value of an absent key.
func (f *part) meet(key int) {
	f.some = f.some.with(key)
	f.none |= 1 << key
}

// matchesConsistently decides whether a value can be chosen for each term such
// that no two of them, and no value of an absent key with them, come from
// different elements of one array. (Elements that are no objects or arrays
// belong to what the array belongs to.) It goes once through the values of the
// keys, in the order of the document.
func (b *branch) matchesConsistently(d *document, found *[maxFilterKeys]span) bool {
	d.parts = append(d.parts[:0], part{array: -1})
	var wanted choice
	var terms [maxFilterKeys]*conditions
	for _, t := range b.terms {
		wanted |= 1 << t.key
		terms[t.key] = t.conditions
	}
	next := *found
	for {
		key := -1
		for k := range maxFilterKeys {
			used := terms[k] != nil || b.absent&(1<<k) != 0
			if used && !next[k].empty() && (key < 0 || d.order(next[k]) < d.order(next[key])) {
				key = k
			}
		}
		if key < 0 {
			break
		}
		v := &d.values[next[key].from]
		next[key].from++
		switch {
		case terms[key] == nil:
			d.enter(v.element, wanted).meet(key)
		case terms[key].match(d, v):
			d.enter(v.element, wanted).take(key)
		}
	}
	d.leave(1, wanted)
	root := &d.parts[0]
	root.closeArray(wanted)
	return root.all()&single(wanted) != 0
}

// enter closes the parts that a value of the element is not in, opens those that
// it is in, and returns the innermost. A part's place in d.parts is the depth of
// its element.
func (d *document) enter(e int32, wanted choice) *part {
	d.inner = d.inner[:0]
	depth := d.elements[e].depth
	for int(depth) >= len(d.parts) || d.parts[depth].element != e {
		d.inner = append(d.inner, e)
		e = d.elements[e].parent
		depth--
	}
	d.leave(int(depth)+1, wanted)
	for _, e := range slices.Backward(d.inner) {
		d.parts[len(d.parts)-1].openArray(d.elements[e].array, wanted)
		d.parts = append(d.parts, part{element: e, array: -1})
	}
	return &d.parts[len(d.parts)-1]
}

// leave closes the parts from a depth on.
func (d *document) leave(depth int, wanted choice) {
	for len(d.parts) > depth {
		last := &d.parts[len(d.parts)-1]
		last.closeArray(wanted)
		above := &d.parts[len(d.parts)-2]
		above.inside |= last.some
		above.outside |= last.none
		d.parts = d.parts[:len(d.parts)-1]
	}
}

func (f *part) openArray(array int32, wanted choice) {
	if f.array == array {
		return
	}
	f.closeArray(wanted)
	f.array = array
}

// closeArray joins each choice with each that the array allows, unless both have
// a value for a key.
func (f *part) closeArray(wanted choice) {
	if f.array < 0 {
		return
	}
	before, array := f.all(), f.inside|single(f.outside)
	f.some = 0
	for rest := before; rest != 0; rest &= rest - 1 {
		a := choice(bits.TrailingZeros32(uint32(rest)))
		for rest := array; rest != 0; rest &= rest - 1 {
			c := choice(bits.TrailingZeros32(uint32(rest)))
			if a&c&wanted == 0 && (a|c)&wanted != 0 {
				f.some |= single(a | c)
			}
		}
	}
	f.none |= f.outside
	f.array, f.inside, f.outside = -1, 0, 0
}
