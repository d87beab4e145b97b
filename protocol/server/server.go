package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/rpc"
)

const (
	// MinToken is the shortest token: 128 bits in hexadecimal, so that it cannot be guessed.
	MinToken = 32

	initializeDeadline = 5 * time.Second  // fixed by version 1
	maxUnauthorised    = 32               // far above the front ends that start at once, far below what a flood needs
	headerDeadline     = 5 * time.Second  // a local client sends its few headers at once
	idleDeadline       = 60 * time.Second // keep-alive between two HTTP requests of one page
	maxHeader          = 16 << 10         // our largest header is a token
)

// Backend answers the methods and keeps the bytes. Its methods are called from many goroutines.
type Backend interface {
	// Connect is called once for each connection, when its initialize has succeeded. The Conn gets its calls from then on; the peer
	// is for notifications and for closing it. It is called from the connection's reading goroutine and must not block.
	Connect(peer *rpc.Peer, host HostIdentity) Conn
	// ServerID is new at each start of the backend.
	ServerID() string
	// OpenResource opens stored bytes of a space. An error with a code is told to the client.
	OpenResource(ctx context.Context, space, id protocol.ID) (Resource, error)
	// Upload stores what body gives and keeps it for the host for a while. It does not read body after it returned, and passes the errors of body on.
	// Errors: ErrUnknownHost; with code closed when the host ended meanwhile; any other with a code is told to the client.
	Upload(ctx context.Context, host HostIdentity, space protocol.ID, mediaType string, body io.Reader) (protocol.ResourcePreparation, error)
}

// Conn is one initialised connection.
type Conn interface {
	// Call gets a call with its params decoded to the Go type of the method's row in protocol. It must not block: it answers through call,
	// now or later.
	Call(call *Call)
	// Closed is called once, after the last Call, when the socket is gone.
	Closed()
}

// Detacher is a Conn that can be detached while its socket is still open. Every later call is then answered with closed.
type Detacher interface{ Detached() bool }

// HostIdentity is who a front end is.
type HostIdentity struct {
	ID  protocol.ID      // digest of the key, safe to show
	Key protocol.HostKey // secret
}

// Options of a Server. Token, Backend and Logger are required.
type Options struct {
	Port    int    // 0 lets the system choose
	Token   string // at least MinToken characters
	Logger  *slog.Logger
	Backend Backend
	// Version of the program, for the Server header of answers to those who have the token; empty leaves it out.
	Version string
	// Random gives host keys; nil stands for the system's source.
	Random io.Reader
	// Capabilities are what initialize tells; nil stands for all of version 1.
	Capabilities []string
	// Stall is how long a download or an upload may make no progress before it is cut. 0: a minute.
	Stall time.Duration
	// CheckResults holds each result against its schema and answers -32603 when it does not fit. It is for tests: it costs a second
	// reading of every answer.
	CheckResults bool
}

// Server listens for front ends.
type Server struct {
	options  Options
	listener net.Listener
	http     *http.Server
	port     int

	mu           sync.Mutex
	sockets      map[*socket]net.Conn
	unauthorised int
	stopping     bool
	running      sync.WaitGroup
}

// Listen opens the port. It fails when the token is too short or the port is taken. Nothing is answered before Serve.
func Listen(options Options) (*Server, error) {
	if len(options.Token) < MinToken {
		return nil, fmt.Errorf("token has %d characters, at least %d are needed", len(options.Token), MinToken)
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.Capabilities == nil {
		options.Capabilities = protocol.Capabilities()
	}
	if options.Stall == 0 {
		options.Stall = stallDeadline
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(options.Port))
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	s := &Server{options: options, listener: listener, port: listener.Addr().(*net.TCPAddr).Port, sockets: map[*socket]net.Conn{}}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerDeadline,
		IdleTimeout:       idleDeadline,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(options.Logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}
	return s, nil
}

// connKey is under which a request's context holds its TCP connection.
type connKey struct{}

// URL is where the server listens, for example http://127.0.0.1:4711.
func (s *Server) URL() string { return "http://127.0.0.1:" + strconv.Itoa(s.port) }

// Serve answers until Shutdown and then returns nil, when every socket, download and upload has ended. Any other end of the listener is an error.
func (s *Server) Serve() error {
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		s.running.Wait()
		return nil
	}
	cut, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(cut) // the listener is lost: whoever is connected cannot come back, and this error says why
	return fmt.Errorf("serve %s: %w", s.URL(), err)
}

// Shutdown lets nobody in any more, closes every socket with 1000 after what is queued for it, and waits for their ends and for those of downloads and
// uploads. When ctx ends first, the rest is cut and its error returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	for socket := range s.sockets {
		socket.peer.Close(rpc.CodeNormal, "server stopped")
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx)
	_ = s.listener.Close() // for a server that was never served; otherwise it is closed already
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	for _, conn := range s.sockets {
		_ = conn.Close() // cutting is the last resort; the reader sees the end either way
	}
	s.mu.Unlock()
	_ = s.http.Close() // the same for plain HTTP connections
	<-done
	return ctx.Err()
}

// enter takes a socket into account. It says false when the server is stopping or has no room for one more unauthorised socket.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.unauthorised >= maxUnauthorised {
		return false
	}
	s.unauthorised++
	s.running.Add(1)
	return true
}

// begin takes a download or upload into account, which is done with running.Done. It says false when the server is stopping.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.running.Add(1)
	return true
}

func (s *Server) add(socket *socket, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets[socket] = conn
	if s.stopping {
		socket.peer.Close(rpc.CodeNormal, "server stopped")
	}
}

func (s *Server) authorised() {
	s.mu.Lock()
	s.unauthorised--
	s.mu.Unlock()
}

func (s *Server) leave(socket *socket, authorised bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sockets, socket)
	if !authorised {
		s.unauthorised--
	}
	s.running.Done()
}
