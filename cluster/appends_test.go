package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
)

// TestAppendsAreBounded by their bytes; a request has one entry at least.
func TestAppendsAreBounded(t *testing.T) {
	for _, test := range []struct {
		name  string
		sizes []int
		want  int
	}{
		{"none", nil, 0},
		{"one that is larger", []int{2 * maxAppendBytes, 1}, 1},
		{"a larger one behind", []int{1, maxAppendBytes}, 1},
		{"all fit", []int{maxAppendBytes / 2, maxAppendBytes / 2}, 2},
		{"the last does not", []int{maxAppendBytes / 2, maxAppendBytes / 2, 1}, 2},
	} {
		var args raft.AppendEntriesRequest
		for i, size := range test.sizes {
			args.Entries = append(args.Entries, &raft.Log{Index: uint64(i + 1), Data: make([]byte, size)})
		}
		shorten(&args)
		if got := len(args.Entries); got != test.want || got > 0 && args.Entries[0].Index != 1 {
			t.Errorf("%s: got %d entries, want the first %d", test.name, got, test.want)
		}
	}
}
