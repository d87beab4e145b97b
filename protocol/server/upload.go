package server

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// hostKeyHeader names the host to which an upload belongs.
const hostKeyHeader = "X-Repa-Host-Key"

// upload answers POST of bytes to a space.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, space protocol.ID) {
	keys := r.Header.Values(hostKeyHeader)
	if len(keys) != 1 || !hex64(keys[0]) {
		refuse(w, http.StatusUnauthorized, hostKeyHeader+" must be the host key that initialize answered.")
		return
	}
	if r.ContentLength > MaxUpload {
		refuseLarge(w)
		return
	}
	if !s.begin() {
		refuseStopping(w)
		return
	}
	defer s.running.Done()
	key := protocol.HostKey(keys[0])
	mediaType := r.Header.Get("Content-Type")
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	body := &uploadBody{from: http.MaxBytesReader(w, r.Body, MaxUpload), control: http.NewResponseController(w), stall: s.options.Stall}
	_ = body.extend() // for what net/http reads of a body that nobody wants; the first Read would say if it cannot be done
	made, err := s.options.Backend.Upload(r.Context(), HostIdentity{ID: hostID(key), Key: key}, space, mediaType, body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(body.err, &tooLarge):
		refuseLarge(w)
	case body.err != nil: // the client is gone, or has stopped: whatever was made of the beginning is not what it wanted to keep
		s.options.Logger.Debug("upload ended early", "space", space, "error", body.err)
		panic(http.ErrAbortHandler)
	case errors.Is(err, ErrUnknownHost):
		refuse(w, http.StatusUnauthorized, "The host of this key is not connected.")
	case err != nil:
		s.refuseFor(w, r, err)
	default:
		s.answerUpload(w, r, made)
	}
}

func (s *Server) answerUpload(w http.ResponseWriter, r *http.Request, made protocol.ResourcePreparation) {
	raw, err := protocol.Encode(made)
	if err == nil && s.options.CheckResults {
		_, err = protocol.Decode[protocol.ResourcePreparation](raw)
	}
	if err != nil {
		s.refuseFor(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, raw)
}

// uploadBody is a body that may pause, but not for ever. It remembers why it ended before its end.
type uploadBody struct {
	from    io.Reader
	control *http.ResponseController
	stall   time.Duration
	err     error
}

// extend gives the client time anew.
func (b *uploadBody) extend() error { return b.control.SetReadDeadline(time.Now().Add(b.stall)) }

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	if err := b.extend(); err != nil {
		b.err = err
		return 0, err
	}
	n, err := b.from.Read(p)
	switch {
	case err == io.EOF: // from here on the connection is only watched for its end
		if reset := b.control.SetReadDeadline(time.Time{}); reset != nil {
			b.err, err = reset, reset
		}
	case err != nil:
		b.err = err
	}
	return n, err
}

// refusal is the body of an answer to what the domain refuses.
type refusal struct {
	Code    protocol.Code `json:"code"`
	Message string        `json:"message"`
}

// refuseFor answers with an error: 400 with its code for one that has one, 409 when the host ended meanwhile, 500 without its text for anything else.
func (s *Server) refuseFor(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone; there is nobody to tell
	}
	fault := protocol.FaultOf(err)
	status, body := http.StatusInternalServerError, refusal{protocol.CodeStorage, fault.Message}
	var domain *protocol.Error
	switch {
	case !errors.As(protocol.ErrorOf(fault), &domain):
		s.options.Logger.Error("request ended unexpectedly", "method", r.Method, "path", r.URL.Path, "error", err)
	case domain.Reason == protocol.CodeClosed && r.Method == http.MethodPost:
		status, body = http.StatusConflict, refusal{domain.Reason, domain.Message}
	default:
		status, body = http.StatusBadRequest, refusal{domain.Reason, domain.Message}
	}
	raw, err := protocol.Encode(body)
	if err != nil {
		s.options.Logger.Error("write refusal", "error", err)
	}
	writeJSON(w, status, raw)
}

func writeJSON(w http.ResponseWriter, status int, raw jsontext.Value) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the client is gone; there is nobody to tell
}

func refuseLarge(w http.ResponseWriter) {
	refuse(w, http.StatusRequestEntityTooLarge, "An upload has at most 64 MiB.")
}

func refuseStopping(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "5")
	refuse(w, http.StatusServiceUnavailable, "The backend is stopping.")
}
