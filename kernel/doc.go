// Package kernel is the Jupyter kernel: it speaks the messaging protocol with front ends and runs no user code. Cells
// run in a child process (package session), which may die without taking the kernel along.
//
// The parts: a [Server] takes requests from a [FrontEnd] (five ZeroMQ sockets: [Bind]; memory in tests), looks their
// type up in one table (dispatch.go), and answers. Three goroutines own the channels: shell handles one request at a
// time, control does the same beside it, so that interrupt and shutdown work while a cell runs, and stdin passes lines
// on. Everything for the page goes through one pump, which joins pieces of text and keeps the order.
//
// The package knows no engine, problem or plot; the program hands the session what it adds (session.Binding).
package kernel

import (
	"context"
	"time"

	"skep/kernel/wire"
)

// Channel is one of the protocol's message channels.
type Channel int

// The channels. IOPub only sends, the others do both.
const (
	Shell Channel = iota
	Control
	Stdin
	IOPub
)

// FrontEnd is where requests come from and where replies and outputs go. Send is safe for concurrent use; Recv is
// called by one goroutine per channel.
type FrontEnd interface {
	// Recv returns the next message of a channel, or an error when there will be none. Messages that are malformed,
	// wrongly signed or repeated never get here.
	Recv(ctx context.Context, ch Channel) (*wire.Message, error)
	// Send queues a message. On IOPub Identities holds the topic.
	Send(ch Channel, m *wire.Message) error
	// Wait returns when the channel can take more without piling it up, or when cancel is closed. The fastest client sets
	// the pace, so that one that has stopped holds up nobody.
	Wait(ch Channel, cancel <-chan struct{})
	// Close ends the connection after giving queued messages up to drain time to leave.
	Close(drain time.Duration) error
}
