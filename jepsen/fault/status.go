package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// statusTimeout is how long a node may take over its status.
const statusTimeout = 5 * time.Second

// Status is a part of what GET /status on the admin port says.
type Status struct {
	Node      string
	ClusterID string `json:"cluster_id"` // "" before the node is of a cluster
	Ready     bool
	Reasons   []string // why it is not
	Role      string
	Term      uint64
	Groups    []struct {
		Applied, First uint64 // indexes: of the state, and of the first entry in the log
		ParkedPolls    int    `json:"parked_polls"`
		Digests        []Digest
	}
	Totals struct{ Visible int } // messages of all queues
	Disk   struct {
		Segments        int
		SegmentBytes    int64 `json:"segment_bytes"`
		SnapshotPauseUS int64 `json:"snapshot_pause_us"` // the longest
	}
	Time struct {
		Cluster    int64 `json:"cluster_ms"`     // since the epoch
		WallOffset int64 `json:"wall_offset_ms"` // of the node's wall clock from cluster time
	}
}

// Digest is the digest of the state at an index.
type Digest struct {
	Index uint64
	Sum   string `json:"xxh64"`
}

func (s Status) applied() uint64 {
	if len(s.Groups) == 0 {
		return 0
	}
	return s.Groups[0].Applied
}

// Status asks the node for its status.
func (n *Node) Status(ctx context.Context) (Status, error) {
	var s Status
	if !n.Running() {
		return s, fmt.Errorf("get status of node: %w", os.ErrProcessDone)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Admin()+"/status", nil)
	if err != nil {
		return s, fmt.Errorf("get status of node: %w", err)
	}
	request.Close = true
	response, err := n.http.Do(request)
	if err != nil {
		return s, fmt.Errorf("get status of node: %w", err)
	}
	err = json.NewDecoder(response.Body).Decode(&s)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return s, fmt.Errorf("read status of node: %w", err)
	}
	return s, nil
}
