// Package peer is the one TCP port by which the nodes of a cluster talk: raft,
// requests of one node to another, and the formation of a cluster.
//
// A connection begins with TLS (unless the cluster runs without), then with a
// hello that is answered, and only then belongs to raft or carries frames:
//
//	hello    magic "HFPP" · format 1 · kind · group · len,cluster · len,from · len,to
//	answer   magic "HFPP" · format 1 · verdict · len,cluster · len,name
//	frame    length of the payload u32 · type · method · id u64 · payload
//
// Numbers are little-endian, len is one byte. Kind is 1 raft, 2 requests, 3
// formation. A hello is refused if it names another cluster or another node than
// the one that was reached, or, with TLS, a node that the certificate does not
// name; the one who dials checks the answer in the same way. So bytes of a
// stranger, or of a node of another cluster, reach neither raft nor a handler. The
// certificates are those that the files have when the connection is made.
//
// Requests are pipelined: all calls to a node share a connection (pings have one
// of their own, so that nothing stands before them), answers come in any order,
// and what waits to be written goes out in one write. A call whose context ends
// is cancelled at the other side by a frame, one whose connection breaks by the
// break.
package peer
