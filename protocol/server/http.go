package server

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"github.com/repa-app/repa/protocol"
)

// handler is every check in its order, before any route.
func (s *Server) handler() http.Handler {
	inner := http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.route))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		switch {
		case !s.ownHost(r.Host):
			refuse(w, http.StatusForbidden, "This address is not the backend's own.")
		case !ownOrigin(r.Header.Values("Origin"), r.Host):
			refuse(w, http.StatusForbidden, "Other pages may not talk to the backend.")
		case r.Method == http.MethodOptions:
			w.WriteHeader(http.StatusNoContent)
		case wantsUpgrade(r):
			s.upgrade(w, r)
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) }

// ownHost compares exactly: another spelling of the same address is what a rebinding page would send.
func (s *Server) ownHost(host string) bool {
	port := ":" + strconv.Itoa(s.port)
	return host == "127.0.0.1"+port || host == "localhost"+port || host == "[::1]"+port
}

// ownOrigin wants the page to come from the very address that it talks to; host has passed ownHost.
func ownOrigin(origins []string, host string) bool {
	return len(origins) == 0 || len(origins) == 1 && origins[0] == "http://"+host
}

func wantsUpgrade(r *http.Request) bool {
	for _, value := range r.Header.Values("Connection") {
		for token := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return len(r.Header.Values("Upgrade")) > 0
}

// tokenHeader wants exactly one bearer token in the header; a token in the address is none.
func (s *Server) tokenHeader(r *http.Request) bool {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	token, ok := strings.CutPrefix(values[0], "Bearer ")
	return ok && s.rightToken(token)
}

func (s *Server) rightToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.options.Token)) == 1
}

func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if !s.tokenHeader(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "The token is missing or wrong.")
		return
	}
	if s.options.Version != "" {
		w.Header().Set("Server", "repa/"+s.options.Version)
	}
	space, resource, found := resourcePath(r.URL.Path)
	all := found && resource == ""
	switch {
	case all && r.Method == http.MethodPost:
		s.upload(w, r, space)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		allow := "GET, HEAD, OPTIONS"
		if all {
			allow = "POST, OPTIONS"
		}
		w.Header().Set("Allow", allow)
		refuse(w, http.StatusMethodNotAllowed, "This method is not served here.")
	case r.URL.Path == "/protocol.json":
		s.serveSchema(w)
	case found && !all:
		s.download(w, r, space, resource)
	default:
		refuse(w, http.StatusNotFound, "There is nothing at this address.")
	}
}

func (s *Server) serveSchema(w http.ResponseWriter) {
	text, err := protocol.Schema()
	if err != nil {
		s.options.Logger.Error("make protocol.json", "error", err)
		refuse(w, http.StatusInternalServerError, "The description of the protocol could not be made; the log says why.")
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // the client is gone; there is nobody to tell
}

// upgrade opens a WebSocket at exactly /rpc and cuts every other upgrade. A browser cannot send a token header with an upgrade, so none is
// needed: initialize carries it. A header that is there must be right.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/rpc" || r.URL.RawPath != "" || r.Method != http.MethodGet {
		panic(http.ErrAbortHandler) // the one way to cut the connection without an answer
	}
	if len(r.Header.Values("Authorization")) > 0 && !s.tokenHeader(r) {
		refuse(w, http.StatusUnauthorized, "The token is wrong.")
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && !slices.Contains([]string{"same-origin", "none"}, site) {
		refuse(w, http.StatusForbidden, "Other pages may not talk to the backend.")
		return
	}
	if !s.enter() {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "Too many connections have not been opened yet; try again in a few seconds.")
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil { // the library has answered
		s.options.Logger.Debug("refuse websocket", "error", err)
		s.leave(nil, false)
		return
	}
	s.runSocket(r.Context(), ws)
}
