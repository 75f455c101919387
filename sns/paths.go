package sns

import (
	"slices"
	"strings"
)

// pathTree numbers paths of names. Its size is that of the names, however long
// the paths are.
type pathTree struct {
	steps   map[step]int32
	origins []step // of each path
}

// step leads from a path to the one with one more name. A name with points in it
// is several, since {"a.b": 1} and {"a": {"b": 1}} are the same to AWS.
type step struct {
	path int32
	name string
}

// rootPath has no names.
const rootPath = 0

func newPathTree() pathTree { return pathTree{steps: map[step]int32{}, origins: make([]step, 1)} }

// to returns the path that the name leads to, a new one if need be.
func (t *pathTree) to(path int32, name string) int32 {
	for more := true; more; {
		var first string
		first, name, more = strings.Cut(name, ".")
		s := step{path, first}
		next, ok := t.steps[s]
		if !ok {
			next = int32(len(t.origins))
			t.steps[s] = next
			t.origins = append(t.origins, s)
		}
		path = next
	}
	return path
}

// find returns the path of names without points.
func (t *pathTree) find(names []string) (path int32, ok bool) {
	path = rootPath
	for _, name := range names {
		if path, ok = t.steps[step{path, name}]; !ok {
			return 0, false
		}
	}
	return path, true
}

// names returns the names of a path.
func (t *pathTree) names(path int32) []string {
	var names []string
	for ; path != rootPath; path = t.origins[path].path {
		names = append(names, t.origins[path].name)
	}
	slices.Reverse(names)
	return names
}
