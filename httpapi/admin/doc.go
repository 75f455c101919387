// Package admin is the operator's side of a node, on a port of its own: status,
// metrics, queues, settings and profiles. Nobody signs in here, so the port
// belongs on loopback or behind something that asks.
//
// The face: New gives the http.Handler, Metrics takes what the API port
// observes. The package reads a node through the interface Node and decides
// nothing; what changes something proposes commands as any client would.
package admin
