// Package httpapi speaks the AWS protocols: it turns an HTTP request into a
// command of sqs or sns, and its result into a response. All that a client can observe
// of the wire is decided here and nowhere else: protocols, paths, queue URLs,
// the checks that need no state, error shapes, documents in attributes.
//
//	s, err := httpapi.New(node, httpapi.Config{...})
//	err = s.Serve(listener) // until Shutdown
//
// An action reads its request through wire.Input and writes its response
// through wire.Output, so that both protocols are served by the same code. It
// reads everything before it judges anything: AWS reports a value of the wrong
// type first, then a missing queue, then the first rule that was broken.
//
// Nothing that is handed to the Broker refers to memory of the HTTP server,
// which is used again for the next request.
package httpapi
