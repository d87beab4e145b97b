package server

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/repa-app/repa/protocol"
)

const (
	// MaxUpload is the largest body of an upload: version 1 fixes it.
	MaxUpload = 64 << 20

	// partSize is how much of a resource is in memory at a time: large enough that calls cost nothing, small beside anything else.
	partSize = 64 << 10
	// stallDeadline is how long a client may take or send nothing. A page that was left open pauses for longer, and asks again from where it was.
	stallDeadline = 60 * time.Second
	// keepForever is what an answer that never changes may say: its address is the digest of its bytes. It is the learner's, so no shared cache keeps it.
	keepForever = "private, max-age=31536000, immutable"
)

// Resource is the open bytes of a resource. ReadAt is called by one goroutine, and Close once, after the last ReadAt.
type Resource interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// ErrUnknownHost is what Backend.Upload answers for a host that is not there: it never was, it detached, or it left without coming back.
var ErrUnknownHost = errors.New("no such host is connected")

// resourcePath takes the path of a resource, or that of all of a space with id "", apart.
func resourcePath(path string) (space, id protocol.ID, ok bool) {
	path, ok = strings.CutPrefix(path, "/spaces/")
	name, rest, _ := strings.Cut(path, "/")
	space = protocol.ID(name)
	if !ok || !space.Valid() {
		return "", "", false
	}
	if rest == "resources" {
		return space, "", true
	}
	digits, ok := strings.CutPrefix(rest, "resources/")
	return space, protocol.ID(digits), ok && hex64(digits)
}

// hex64 says whether text is 64 lower-case hexadecimal digits, as resource ids and host keys are.
func hex64(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// download answers GET and HEAD of a resource.
func (s *Server) download(w http.ResponseWriter, r *http.Request, space, id protocol.ID) {
	if !s.begin() {
		refuseStopping(w)
		return
	}
	defer s.running.Done()
	resource, err := s.options.Backend.OpenResource(r.Context(), space, id)
	if err != nil {
		s.refuseFor(w, r, err)
		return
	}
	defer func() {
		if err := resource.Close(); err != nil {
			s.options.Logger.Warn("close resource", "space", space, "resource", id, "error", err)
		}
	}()
	tag := `"` + string(id) + `"`
	p := choosePart(r, tag, resource.Size())
	first := make([]byte, min(p.length, partSize))
	if r.Method == http.MethodHead {
		first = nil
	}
	if err := readPart(resource, first, p.start); err != nil {
		s.refuseFor(w, r, err)
		return
	}
	p.describe(w.Header(), tag, resource.Size())
	if p.status >= http.StatusMultipleChoices {
		w.WriteHeader(p.status)
		return
	}
	w.WriteHeader(p.status)
	if r.Method == http.MethodHead {
		return
	}
	if err := s.send(w, resource, first, p); err != nil {
		s.options.Logger.Debug("cut download", "space", space, "resource", id, "error", err)
		panic(http.ErrAbortHandler) // a clean end would pass for the whole resource
	}
}

// send writes a part of a resource, of which first is in memory already.
func (s *Server) send(w http.ResponseWriter, resource Resource, first []byte, p part) error {
	control := http.NewResponseController(w)
	for buf, at := first, int64(0); at < p.length; {
		if at > 0 {
			buf = buf[:min(p.length-at, int64(len(buf)))]
			if err := readPart(resource, buf, p.start+at); err != nil {
				return err
			}
		}
		if err := control.SetWriteDeadline(time.Now().Add(s.options.Stall)); err != nil {
			return err
		}
		n, err := w.Write(buf)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	if err := control.Flush(); err != nil { // while the deadline counts
		return err
	}
	return control.SetWriteDeadline(time.Time{})
}

// readPart fills buf.
func readPart(from io.ReaderAt, buf []byte, at int64) error {
	n, err := from.ReadAt(buf, at)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// part is what of a resource an answer has, and its status.
type part struct {
	status        int
	start, length int64
}

// choosePart decides by the conditions and the range of a request, in the order of RFC 9110, section 13.2.2.
func choosePart(r *http.Request, tag string, size int64) part {
	whole := part{http.StatusOK, 0, size}
	if values := r.Header.Values("If-Match"); len(values) > 0 && !listsTag(values, tag, false) {
		return part{status: http.StatusPreconditionFailed}
	}
	if listsTag(r.Header.Values("If-None-Match"), tag, true) {
		return part{status: http.StatusNotModified}
	}
	ranges := r.Header.Values("Range")
	if len(ranges) == 0 || r.Method != http.MethodGet { // nothing else has ranges
		return whole
	}
	if conditions := r.Header.Values("If-Range"); len(conditions) > 0 && (len(conditions) > 1 || conditions[0] != tag) {
		return whole
	}
	unit, set, _ := strings.Cut(strings.Join(ranges, ","), "=")
	if !strings.EqualFold(unit, "bytes") {
		return whole // units that are not known are passed over
	}
	start, length, ok := cutRange(set, size)
	switch {
	case !ok:
		return part{status: http.StatusRequestedRangeNotSatisfiable}
	case length == 0: // the end of nothing has no place that could be named
		return whole
	}
	return part{http.StatusPartialContent, start, length}
}

// listsTag says whether a list of entity tags has tag or is *. Weak tags count only for a weak comparison.
func listsTag(values []string, tag string, weak bool) bool {
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			item = strings.TrimSpace(item)
			if weak {
				item = strings.TrimPrefix(item, "W/")
			}
			if item == tag || item == "*" {
				return true
			}
		}
	}
	return false
}

// cutRange reads one range, a-b, a- or -n, of size bytes. An end behind the last byte is cut. Several ranges, and what is none, are not ok, like a range
// that begins behind the last byte. Only the end of nothing has no length.
func cutRange(text string, size int64) (start, length int64, ok bool) {
	from, to, found := strings.Cut(text, "-")
	if !found {
		return 0, 0, false
	}
	last, rightEnd := position(to)
	if from == "" {
		length = min(last, size)
		return size - length, length, rightEnd && last > 0
	}
	start, ok = position(from)
	if to == "" {
		last, rightEnd = size, true
	}
	if !ok || !rightEnd || last < start || start >= size {
		return 0, 0, false
	}
	return start, min(last, size-1) - start + 1, true
}

// position reads a number of a range. One that is too large for any file counts as the largest there is.
func position(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, _ := strconv.ParseInt(text, 10, 64) // out of range gives the largest
	return n, true
}

// describe sets the headers of an answer.
func (p part) describe(h http.Header, tag string, size int64) {
	if p.status == http.StatusRequestedRangeNotSatisfiable || p.status == http.StatusPreconditionFailed {
		h.Set("Accept-Ranges", "bytes")
		h.Set("Content-Length", "0")
		if p.status == http.StatusRequestedRangeNotSatisfiable {
			h.Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
		}
		return
	}
	h.Set("Cache-Control", keepForever)
	h.Set("ETag", tag)
	if p.status == http.StatusNotModified {
		return
	}
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Type", "application/octet-stream") // never what a page could run
	h.Set("Content-Disposition", "attachment")
	h.Set("Content-Length", strconv.FormatInt(p.length, 10))
	if p.status == http.StatusPartialContent {
		h.Set("Content-Range", "bytes "+strconv.FormatInt(p.start, 10)+"-"+strconv.FormatInt(p.start+p.length-1, 10)+"/"+strconv.FormatInt(size, 10))
	}
}
