package frames

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Opcodes of WebSocket frames.
const (
	OpContinuation byte = 0
	OpText         byte = 1
	OpBinary       byte = 2
	OpClose        byte = 8
	OpPing         byte = 9
	OpPong         byte = 10
)

// patience is how long a test waits for bytes that must come: far more than a busy machine needs.
const patience = 30 * time.Second

// ClosedError is the end of a socket by a close frame.
type ClosedError struct {
	Code   int
	Reason string
}

func (e *ClosedError) Error() string { return fmt.Sprintf("closed with %d %s", e.Code, e.Reason) }

// StatusError is the answer to an upgrade that was refused.
type StatusError struct{ Status int }

func (e *StatusError) Error() string { return fmt.Sprintf("upgrade answered with %d", e.Status) }

// Socket is a plain WebSocket client: one goroutine reads, one writes.
type Socket struct {
	Conn   net.Conn
	reader *bufio.Reader
	Silent bool // do not answer pings
}

// Dial upgrades at base (http://host:port) + path. Headers are added to the request; Host replaces the real one.
func Dial(base, path string, headers map[string]string) (*Socket, error) {
	address := strings.TrimPrefix(base, "http://")
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	lines := map[string]string{
		"Host": address, "Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	}
	for name, value := range headers {
		lines[name] = value
	}
	var request strings.Builder
	fmt.Fprintf(&request, "GET %s HTTP/1.1\r\n", path)
	for name, value := range lines {
		fmt.Fprintf(&request, "%s: %s\r\n", name, value)
	}
	request.WriteString("\r\n")
	if _, err := io.WriteString(conn, request.String()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	reader := bufio.NewReader(conn)
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, errors.Join(&StatusError{response.StatusCode}, conn.Close())
	}
	return &Socket{Conn: conn, reader: reader}, nil
}

// WriteText sends one text message.
func (s *Socket) WriteText(text []byte) error { return s.WriteFrame(true, OpText, text) }

// WriteFrame sends one frame as it is told, valid or not. The mask is zero, which the protocol allows.
func (s *Socket) WriteFrame(fin bool, opcode byte, payload []byte) error {
	first := opcode
	if fin {
		first |= 0x80
	}
	header := []byte{first}
	switch size := len(payload); {
	case size < 126:
		header = append(header, 0x80|byte(size))
	case size < 1<<16:
		header = binary.BigEndian.AppendUint16(append(header, 0x80|126), uint16(size))
	default:
		header = binary.BigEndian.AppendUint64(append(header, 0x80|127), uint64(size))
	}
	header = append(header, 0, 0, 0, 0)
	_, err := s.Conn.Write(append(header, payload...))
	return err
}

// ReadFrame reads one frame, control frames too.
func (s *Socket) ReadFrame() (fin bool, opcode byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(s.reader, head[:]); err != nil {
		return false, 0, nil, err
	}
	size := uint64(head[1] & 0x7f)
	switch size {
	case 126:
		var wide [2]byte
		_, err = io.ReadFull(s.reader, wide[:])
		size = uint64(binary.BigEndian.Uint16(wide[:]))
	case 127:
		var wide [8]byte
		_, err = io.ReadFull(s.reader, wide[:])
		size = binary.BigEndian.Uint64(wide[:])
	}
	if err != nil {
		return false, 0, nil, err
	}
	payload = make([]byte, size)
	_, err = io.ReadFull(s.reader, payload)
	return head[0]&0x80 != 0, head[0] & 0x0f, payload, err
}

// Read gives the next text message; it answers pings and a close. The end is a *ClosedError when the server said one.
func (s *Socket) Read() ([]byte, error) {
	var message []byte
	for {
		if err := s.Conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		fin, opcode, payload, err := s.ReadFrame()
		if err != nil {
			return nil, err
		}
		switch opcode {
		case OpPing:
			if s.Silent {
				continue
			}
			if err := s.WriteFrame(true, OpPong, payload); err != nil {
				return nil, err
			}
		case OpPong:
		case OpClose:
			_ = s.WriteFrame(true, OpClose, payload) // the server may be gone already; the close frame is what counts
			closed := &ClosedError{Code: 1005}
			if len(payload) >= 2 {
				closed.Code, closed.Reason = int(binary.BigEndian.Uint16(payload)), string(payload[2:])
			}
			return nil, errors.Join(closed, s.Conn.Close())
		default:
			message = append(message, payload...)
			if fin {
				return message, nil
			}
		}
	}
}

// Close cuts the socket.
func (s *Socket) Close() error { return s.Conn.Close() }
