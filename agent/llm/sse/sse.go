package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// MaxEvent bounds the data of one event and the length of one line. 16 MiB is far more than any text delta and leaves room
// for a generated picture in base64.
const MaxEvent = 16 << 20

// ErrTooLong reports a line or an event of more than MaxEvent bytes.
var ErrTooLong = errors.New("an event is larger than 16 MiB")

// Event is one event. Data is valid until the next call of Next.
type Event struct {
	Name string
	Data []byte
	Open bool // the stream ended before the blank line that completes the event
}

// Decoder reads events from a stream.
type Decoder struct {
	r      *bufio.Reader
	line   []byte
	data   []byte
	skipLF bool
	begun  bool
	err    error
	junk   string
}

// NewDecoder returns a decoder of r.
func NewDecoder(r io.Reader) *Decoder {
	return &Decoder{r: bufio.NewReaderSize(r, 32<<10)}
}

// Next returns the next event that has data or a name. The error is io.EOF at the regular end, ErrTooLong, or what the
// reader returned; an incomplete event before a reader's error is dropped, since its bytes are not trustworthy.
func (d *Decoder) Next() (Event, error) {
	var ev Event
	d.data = d.data[:0]
	hasData := false
	for {
		line, err := d.readLine()
		if err == io.EOF && (hasData || ev.Name != "") {
			ev.Data, ev.Open = d.data, true
			return ev, nil
		}
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if hasData || ev.Name != "" {
				ev.Data = d.data
				return ev, nil
			}
			continue
		}
		name, value := d.field(line)
		switch name {
		case "event":
			ev.Name = string(value)
		case "data":
			if hasData {
				d.data = append(d.data, '\n')
			}
			hasData = true
			d.data = append(d.data, value...)
			if len(d.data) > MaxEvent {
				d.err = ErrTooLong
				return Event{}, d.err
			}
		}
	}
}

// Junk returns the beginning of the first line that is no field of an event, or "".
func (d *Decoder) Junk() string { return d.junk }

func (d *Decoder) field(line []byte) (name string, value []byte) {
	if line[0] == '{' {
		return "data", line
	}
	before, after, _ := bytes.Cut(line, []byte(":"))
	after = bytes.TrimPrefix(after, []byte(" "))
	switch string(before) {
	case "data":
		return "data", after
	case "event":
		return "event", after
	case "", "id", "retry":
		return "", nil
	}
	if d.junk == "" {
		d.junk = excerpt(line)
	}
	return "", nil
}

// excerpt is the first 80 bytes of a line, enough to recognise a page or a proxy's message, cut at a character.
func excerpt(line []byte) string {
	const limit = 80
	if len(line) <= limit {
		return string(line)
	}
	end := limit
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return string(line[:end]) + "…"
}

// readLine returns the next line without its end. At the end of the stream it returns an unfinished last line first.
func (d *Decoder) readLine() ([]byte, error) {
	if d.err != nil {
		return nil, d.err
	}
	d.line = d.line[:0]
	for {
		if _, err := d.r.Peek(1); err != nil {
			d.err = err
			if err == io.EOF && len(d.line) > 0 {
				return d.withoutMark(), nil
			}
			return nil, err
		}
		chunk, _ := d.r.Peek(d.r.Buffered())
		if d.skipLF {
			d.skipLF = false
			if chunk[0] == '\n' {
				_, _ = d.r.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			d.line = append(d.line, chunk...)
			_, _ = d.r.Discard(len(chunk))
		} else {
			d.line = append(d.line, chunk[:end]...)
			d.skipLF = chunk[end] == '\r'
			_, _ = d.r.Discard(end + 1)
		}
		if len(d.line) > MaxEvent {
			d.err = ErrTooLong
			return nil, d.err
		}
		if end >= 0 {
			return d.withoutMark(), nil
		}
	}
}

// withoutMark removes a byte order mark from the first line.
func (d *Decoder) withoutMark() []byte {
	if d.begun {
		return d.line
	}
	d.begun = true
	return bytes.TrimPrefix(d.line, []byte("\xef\xbb\xbf"))
}
