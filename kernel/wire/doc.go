// Package wire carries Jupyter messages: ZMTP frames, the five sockets of a kernel, HMAC signatures with a replay
// check, and the connection file.
//
// go-zeromq/zmq4 does the ZMTP greeting and handshake. Its socket types are not used: they allocate what a peer
// announces, shake hands inside the accept loop, let one stopped subscriber block the others and hide subscriptions
// from an XPUB. The sockets here give every peer a reader, a writer and a queue bounded in bytes, so that a bad peer
// loses its own connection and nothing else.
//
// The package knows no message type but the header fields, and nothing of kernels, cells or sessions.
//
// Path of a request: [Listen] → Socket.Recv → [Signer.Decode] → Message. Path of a reply: [Signer.Encode] →
// Socket.Send.
package wire
