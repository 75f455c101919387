package sns

import (
	"slices"
)

// The limits of filter policies (SNS developer guide, "Filter policy
// constraints"; AWS recording test_policy_complexity).
const (
	maxFilterPolicySize = 256 << 10 // bytes
	maxFilterKeys       = 5         // paths of conditions, those of all alternatives together
	maxFilterComplexity = 150
	maxStars            = 3   // of a wildcard
	maxWildcardPoints   = 100 // of a policy
)

// keySet is a set of indexes into FilterPolicy.keys.
type keySet uint8

// all goes through the set from the lowest index on.
func (s keySet) all() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for key := range maxFilterKeys {
			if s&(1<<key) != 0 && !yield(key) {
				return
			}
		}
	}
}

func tooComplex() *FilterError { return &FilterError{Detail: "Filter policy is too complex"} }

// slot is what a branch wants of one key.
type slot struct {
	conditions *conditions // nil: nothing
	depth      int         // of the key; 1 at the top
}

type slots [maxFilterKeys]slot

// expand makes the branches of a policy, unless it is over a limit.
func (p *FilterPolicy) expand(root *filterObject) error {
	e := expander{tree: newPathTree()}
	e.collectKeys(root, rootPath)
	if len(e.keys) > maxFilterKeys {
		return &FilterError{Detail: "Filter policy can not have more than 5 keys"}
	}
	if wildcardPoints(root) > maxWildcardPoints {
		return tooComplex()
	}
	for _, key := range e.keys {
		p.keys = append(p.keys, e.tree.names(key))
	}
	expanded, ok := e.object([]slots{{}}, root, rootPath, 1)
	if !ok {
		return tooComplex()
	}
	complexity := 0
	for i := range expanded {
		complexity += expanded[i].complexity()
	}
	if complexity > maxFilterComplexity {
		return tooComplex()
	}
	for i := range expanded {
		p.split(&expanded[i], 0, branch{})
	}
	p.weigh()
	return nil
}

// weigh works out the costs of the keys.
func (p *FilterPolicy) weigh() {
	for i := range p.costs {
		p.costs[i] = cost{value: len(p.branches), text: len(p.branches)}
	}
	for i := range p.branches {
		for _, t := range p.branches[i].terms {
			patterns := t.conditions.patterns()
			p.costs[t.key].value += patterns / patternsPerWork
			p.costs[t.key].text += patterns
		}
	}
}

// expander makes the branches of a policy.
type expander struct {
	tree pathTree
	keys []int32 // paths
}

// collectKeys stops as soon as there are too many.
func (e *expander) collectKeys(o *filterObject, path int32) {
	for _, m := range o.members {
		for _, alternative := range m.alternatives {
			e.collectKeys(alternative, path)
		}
		switch {
		case len(e.keys) > maxFilterKeys:
			return
		case m.object != nil:
			e.collectKeys(m.object, e.tree.to(path, m.name))
		case m.conditions != nil:
			if key := e.tree.to(path, m.name); !slices.Contains(e.keys, key) {
				e.keys = append(e.keys, key)
			}
		}
	}
}

// object adds to each of the branches what the object wants. Where a key
// is there twice the last one counts. It gives up at more branches than any
// policy that is not too complex has.
func (e *expander) object(branches []slots, o *filterObject, path int32, depth int) ([]slots, bool) {
	ok := true
	for _, m := range o.members {
		switch {
		case m.conditions != nil:
			key := slices.Index(e.keys, e.tree.to(path, m.name))
			for i := range branches {
				branches[i][key] = slot{conditions: m.conditions, depth: depth}
			}
		case m.object != nil:
			branches, ok = e.object(branches, m.object, e.tree.to(path, m.name), depth+1)
		default:
			branches, ok = e.alternatives(branches, m.alternatives, path, depth)
		}
		if !ok || len(branches) > maxFilterComplexity {
			return nil, false
		}
	}
	return branches, true
}

func (e *expander) alternatives(branches []slots, alternatives []*filterObject, path int32, depth int) ([]slots, bool) {
	var all []slots
	for _, o := range alternatives {
		some, ok := e.object(slices.Clone(branches), o, path, depth)
		if !ok || len(all)+len(some) > maxFilterComplexity {
			return nil, false
		}
		all = append(all, some...)
	}
	return all, true
}

// complexity is the product over the keys of conditions and depth. It is bounded
// only if it is over the limit.
func (s *slots) complexity() int {
	product := 1
	for _, slot := range s {
		if slot.conditions == nil {
			continue
		}
		if product *= slot.conditions.count * slot.depth; product > maxFilterComplexity {
			return maxFilterComplexity + 1
		}
	}
	return product
}

// split turns what a branch wants of the keys from one on into branches where
// each key must either have a value or have none. They are no more than the
// complexity is.
func (p *FilterPolicy) split(s *slots, key int, b branch) {
	for key < maxFilterKeys && s[key].conditions == nil {
		key++
	}
	if key == maxFilterKeys {
		b.terms = slices.Clone(b.terms)
		p.branches = append(p.branches, b)
		return
	}
	c := s[key].conditions
	if c.absent {
		absent := b
		absent.absent |= 1 << key
		p.split(s, key+1, absent)
	}
	if !c.onlyAbsent() {
		b.terms = append(slices.Clip(b.terms), term{key: key, conditions: c})
		p.split(s, key+1, b)
	}
}

// wildcardPoints adds up the points of the keys (SNS developer guide, "Filter
// policy constraints"), and is over the limit if a pattern has too many stars.
func wildcardPoints(o *filterObject) int {
	total := 0
	for _, m := range o.members {
		for _, alternative := range m.alternatives {
			total += wildcardPoints(alternative)
		}
		if m.object != nil {
			total += wildcardPoints(m.object)
		}
		if m.conditions != nil {
			total += m.conditions.wildcardPoints()
		}
	}
	return total
}

// wildcardPoints is one for a pattern with one star, three for each of several;
// and that times the number of patterns.
func (c *conditions) wildcardPoints() int {
	points, patterns := 0, 0
	for i := range c.matchers {
		for _, w := range c.matchers[i].wildcards {
			stars := w.stars()
			switch {
			case stars > maxStars:
				return maxWildcardPoints + 1
			case stars <= 1 || c.matchers[i].not:
				points++
			default:
				points += 3 * stars
			}
			patterns++
		}
	}
	return points * patterns
}
