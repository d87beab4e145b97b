package server

import (
	"context"
	"net"
	"time"

	"github.com/coder/websocket"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/rpc"
)

// Call is one decoded call. It is answered once, by Reply or Fail, from any goroutine; the first answer counts.
type Call struct {
	Method string
	Params any // the Go type of the method's params

	raw    *rpc.Call
	method *protocol.Method
	server *Server
}

// Reply answers with a result of the method's result type, or with a jsontext.Value that is encoded already. nil is null.
func (c *Call) Reply(result any) {
	if c.server.options.CheckResults {
		raw, err := protocol.Encode(result)
		if err == nil {
			err = c.method.CheckResult(raw)
		}
		if err != nil {
			c.server.options.Logger.Error("result does not fit its schema", "method", c.Method, "error", err)
			c.raw.Fail(err)
			return
		}
		result = raw
	}
	c.raw.Reply(result)
}

// Fail answers with an error: one with a code becomes that domain error, anything else -32603 without its text.
func (c *Call) Fail(err error) {
	if protocol.FaultOf(err).Number == protocol.NumberInternal {
		c.server.options.Logger.Error("call ended unexpectedly", "method", c.Method, "error", err)
	}
	c.raw.Fail(err)
}

// socket is one WebSocket from its upgrade to its end. Its fields belong to the reading goroutine.
type socket struct {
	server    *Server
	peer      *rpc.Peer
	handshake Handshake
	deadline  *time.Timer
	conn      Conn
}

// runSocket returns when the socket is gone.
func (s *Server) runSocket(ctx context.Context, ws *websocket.Conn) {
	socket := &socket{
		server: s,
		peer:   rpc.New(ws, rpc.Options{}),
		handshake: Handshake{
			RightToken:   s.rightToken,
			ServerID:     s.options.Backend.ServerID(),
			Capabilities: s.options.Capabilities,
			Random:       s.options.Random,
		},
	}
	socket.deadline = time.AfterFunc(initializeDeadline, func() {
		socket.peer.Close(rpc.CodeNoInitialize, "no initialize")
	})
	tcp, _ := ctx.Value(connKey{}).(net.Conn)
	s.add(socket, tcp)
	// The request's context ends with its handler, not with the socket, and the server closes sockets itself.
	err := socket.peer.Run(context.WithoutCancel(ctx), socket)
	socket.deadline.Stop()
	s.options.Logger.Debug("connection ended", "error", err)
	s.leave(socket, socket.conn != nil)
}

// Handle implements rpc.Handler: the checks of a call in the order of version 1.
func (s *socket) Handle(call *rpc.Call) {
	if call.Method == protocol.Initialize.Name {
		s.initialize(call)
		return
	}
	if s.conn == nil {
		call.Fail(protocol.NewFault(protocol.NumberUnauthorised, "Call initialize with the token first"))
		return
	}
	if s.detached() {
		call.Fail(errDetached)
		return
	}
	method, ok := protocol.Lookup(call.Method)
	if !ok {
		call.Fail(protocol.NewFault(protocol.NumberUnknownMethod, "Method not found"))
		return
	}
	params, err := method.DecodeParams(call.Params)
	if err != nil {
		call.Fail(badParams(call.Method, err))
		return
	}
	s.conn.Call(&Call{Method: call.Method, Params: params, raw: call, method: method, server: s.server})
}

var errDetached = protocol.Errorf(protocol.CodeClosed, "This host has detached; open a new connection to go on")

func (s *socket) detached() bool {
	detacher, ok := s.conn.(Detacher)
	return ok && detacher.Detached()
}

func (s *socket) initialize(call *rpc.Call) {
	if s.conn != nil && s.detached() {
		call.Fail(errDetached)
		return
	}
	result, err := s.handshake.Initialize(call.Params)
	if err != nil {
		call.Fail(err)
		return
	}
	if s.conn == nil {
		if !s.deadline.Stop() {
			// The deadline has passed and the close is on its way: this connection is not opened any more.
			call.Fail(protocol.NewFault(protocol.NumberUnauthorised, "Initialize came too late"))
			return
		}
		s.conn = s.server.options.Backend.Connect(s.peer, *s.handshake.Host())
		s.server.authorised()
	}
	call.Reply(result)
}

// Closed implements rpc.Handler.
func (s *socket) Closed(error) {
	if s.conn != nil {
		s.conn.Closed()
	}
}
