package cluster

import "github.com/hashicorp/raft"

// maxAppendBytes is about how many bytes of entries one request to a follower has. Raft
// counts entries only (MaxAppendEntries, of up to a MiB each) and gives every request
// raftIOTimeout: over a link that does not carry the largest in that time, a follower
// that is behind would be sent the same entries for ever.
const maxAppendBytes = 4 << 20

// AppendEntries implements raft.Transport.
func (g *guard) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	shorten(args)
	return g.Transport.AppendEntries(id, target, args, resp)
}

// AppendEntriesPipeline implements raft.Transport.
func (g *guard) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := g.Transport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	return pipeline{p}, nil
}

// pipeline is a raft.AppendPipeline of requests that are not too large.
type pipeline struct{ raft.AppendPipeline }

// AppendEntries implements raft.AppendPipeline.
func (p pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	shorten(args)
	return p.AppendPipeline.AppendEntries(args, resp)
}

// shorten leaves the first entries of a request, one at least, and takes away what makes
// it larger than maxAppendBytes. Raft goes on behind the last entry that the request
// still has.
func shorten(args *raft.AppendEntriesRequest) {
	size := 0
	for i, e := range args.Entries {
		if size += len(e.Data); size > maxAppendBytes && i > 0 {
			args.Entries = args.Entries[:i]
			return
		}
	}
}
