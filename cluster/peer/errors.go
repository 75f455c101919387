package peer

import "errors"

// ErrNotSent says that a request was certainly not executed: nothing of it left
// this process, or the other side refused it before a handler saw it.
var ErrNotSent = errors.New("request not sent")

// ErrBroken says that a request was sent, at least in part, and that no answer
// came: the connection broke or the caller left. It may have been executed.
var ErrBroken = errors.New("connection broken")

// ErrRefused says that the hello of a connection was refused: the two nodes do
// not belong to one cluster, or are not who they say. What comes of it wraps
// ErrNotSent, too.
var ErrRefused = errors.New("connection refused by the other node")

// ErrClosed says that the port was closed.
var ErrClosed = errors.New("peer port closed")

// errTooLarge says that a frame is longer than MaxFrame.
var errTooLarge = errors.New("frame too large")
