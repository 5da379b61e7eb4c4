package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"time"
	"unicode/utf8"

	"skep/kernel/wire"
)

// sockets is the FrontEnd over ZeroMQ.
type sockets struct {
	session   string
	signer    *wire.Signer
	channels  [4]*wire.Socket // by Channel
	heartbeat *wire.Socket
	log       *log.Logger
}

// Bind binds the five sockets of a connection. session is the kernel's own session id, the one in every header.
func Bind(c wire.Connection, session string, logger *log.Logger) (FrontEnd, error) {
	s := &sockets{session: session, signer: c.Signer(), log: logger}
	var err error
	bind := func(kind wire.Kind, port int) *wire.Socket {
		if err != nil {
			return nil
		}
		var socket *wire.Socket
		socket, err = wire.Listen(kind, c.Endpoint(port))
		return socket
	}
	s.heartbeat = bind(wire.Reply, c.HBPort)
	s.channels = [4]*wire.Socket{
		Shell: bind(wire.Router, c.ShellPort), Control: bind(wire.Router, c.ControlPort),
		Stdin: bind(wire.Router, c.StdinPort), IOPub: bind(wire.Publish, c.IOPubPort),
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(0))
	}
	go s.welcome()
	return s, nil
}

func (s *sockets) Recv(ctx context.Context, ch Channel) (*wire.Message, error) {
	for {
		frames, err := s.channels[ch].Recv(ctx)
		if err != nil {
			return nil, err
		}
		m, err := s.signer.Decode(frames)
		if err == nil {
			return m, nil
		}
		s.log.Printf("dropped a message: %v", err)
	}
}

func (s *sockets) Send(ch Channel, m *wire.Message) error {
	frames, err := s.signer.Encode(m)
	if err != nil {
		return err
	}
	return s.channels[ch].Send(frames)
}

// Wait implements FrontEnd.
func (s *sockets) Wait(ch Channel, cancel <-chan struct{}) { s.channels[ch].Wait(cancel) }

// welcome greets every new subscription, so that a client knows from when on it misses nothing (protocol 5.5).
func (s *sockets) welcome() {
	for {
		frames, err := s.channels[IOPub].Recv(context.Background())
		if err != nil {
			return
		}
		topic := frames[1][1:]
		if !utf8.Valid(topic) {
			continue
		}
		content, err := json.Marshal(map[string]string{"subscription": string(topic)})
		if err != nil {
			continue
		}
		m := &wire.Message{
			Identities: [][]byte{topic}, Header: wire.NewHeader("iopub_welcome", s.session), Content: content,
		}
		if greeting, err := s.signer.Encode(m); err == nil {
			s.channels[IOPub].SendTo(frames[0], greeting)
		}
	}
}

func (s *sockets) Close(drain time.Duration) error {
	all := append([]*wire.Socket{s.heartbeat}, s.channels[:]...)
	if drain > 0 {
		for _, socket := range all {
			socket.Drain(drain)
		}
	}
	var errs []error
	for _, socket := range all {
		if socket != nil {
			errs = append(errs, socket.Close())
		}
	}
	return errors.Join(errs...)
}
