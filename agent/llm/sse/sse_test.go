package sse_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/llm/sse"
)

type event struct {
	Name, Data string
	Open       bool
}

func readAll(r io.Reader) (events []event, junk string, err error) {
	d := sse.NewDecoder(r)
	for {
		ev, err := d.Next()
		if err == io.EOF {
			return events, d.Junk(), nil
		}
		if err != nil {
			return events, d.Junk(), err
		}
		events = append(events, event{ev.Name, string(ev.Data), ev.Open})
	}
}

func TestQuirks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want []event
		junk string
	}{
		"plain":                {in: "event: a\ndata: 1\n\ndata: 2\n\n", want: []event{{"a", "1", false}, {"", "2", false}}},
		"CRLF":                 {in: "event: a\r\ndata: 1\r\n\r\n", want: []event{{"a", "1", false}}},
		"CR":                   {in: "data: 1\r\rdata: 2\r\r", want: []event{{"", "1", false}, {"", "2", false}}},
		"mixed line ends":      {in: "data: 1\r\n\ndata: 2\r\r\ndata: 3\n\n", want: []event{{"", "1", false}, {"", "2", false}, {"", "3", false}}},
		"no space":             {in: "data:[DONE]\n\n", want: []event{{"", "[DONE]", false}}},
		"two spaces":           {in: "data:  x\n\n", want: []event{{"", " x", false}}},
		"comments":             {in: ": keep-alive\n\n:\ndata: 1\n: between\n\n", want: []event{{"", "1", false}}},
		"byte order mark":      {in: "\ufeffdata: 1\n\n", want: []event{{"", "1", false}}},
		"several data lines":   {in: "data: a\ndata: b\n\n", want: []event{{"", "a\nb", false}}},
		"id and retry":         {in: "id: 7\nretry: 10\ndata: 1\n\n", want: []event{{"", "1", false}}},
		"no blank line":        {in: "data: 1\n", want: []event{{"", "1", true}}},
		"no line end":          {in: "data: 1\n\ndata: 2", want: []event{{"", "1", false}, {"", "2", true}}},
		"bare object":          {in: "{\"error\":1}\n\n", want: []event{{"", `{"error":1}`, false}}},
		"name without data":    {in: "event: ping\n\n", want: []event{{"ping", "", false}}},
		"empty data":           {in: "data\n\ndata:\n\n", want: []event{{"", "", false}, {"", "", false}}},
		"junk":                 {in: "HTTP/1.1 oops\ndata: 1\n\n", want: []event{{"", "1", false}}, junk: "HTTP/1.1 oops"},
		"long junk":            {in: strings.Repeat("é", 60) + "\n", junk: strings.Repeat("é", 40) + "…"},
		"nothing":              {in: ""},
		"colon in the value":   {in: "data: {\"a\":\"b:c\"}\n\n", want: []event{{"", `{"a":"b:c"}`, false}}},
		"a line of 100,000":    {in: "data: " + strings.Repeat("x", 100_000) + "\n\n", want: []event{{"", strings.Repeat("x", 100_000), false}}},
		"Chinese, split later": {in: "data: 光合作用\n\n", want: []event{{"", "光合作用", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
				"error with the last bytes": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				got, junk, err := readAll(r)
				if err != nil || junk != c.junk {
					t.Errorf("%s: error %v, junk %q, want %q", how, err, junk, c.junk)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", how, diff)
				}
			}
		})
	}
}

func TestBrokenReader(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	got, _, err := readAll(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2\n"), iotest.ErrReader(lost)))
	if !errors.Is(err, lost) || len(got) != 1 {
		t.Errorf("events %v, error %v: the event that the error cut must not count", got, err)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", sse.MaxEvent/2)
	for name, in := range map[string]string{
		"one line":        "data: " + line + line + "y\n\n",
		"many data lines": "data: " + line + "\ndata: " + line + "\ndata: y\n\n",
		"no line end":     line + line + "yy",
	} {
		d := sse.NewDecoder(strings.NewReader(in))
		for range 2 { // the decoder stays at its end
			if _, err := d.Next(); !errors.Is(err, sse.ErrTooLong) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

func TestNextDoesNotWaitForMore(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	d := sse.NewDecoder(r)
	for _, block := range []string{"data: 1\n\n", "data: 2\r\n\r\n", "data: 3\r\r"} {
		go func() { _, _ = w.Write([]byte(block)) }()
		if ev, err := d.Next(); err != nil || len(ev.Data) != 1 {
			t.Errorf("%q: %q, %v", block, ev.Data, err)
		}
	}
}

// FuzzDecoder holds for any bytes: the decoder ends without a panic, says the same however the bytes arrive, and what it
// says is stable when it is written out and read again.
func FuzzDecoder(f *testing.F) {
	for _, seed := range []string{
		"event: a\ndata: 1\n\n", "data:[DONE]", "\ufeffdata: x\r\n\r\n", ": c\n\n{\"error\":1}\n", "data: a\ndata: b\n\nevent\n\n",
		"\r\n\r\r\n", "data: \xff\xfe\n\n", "id: 1\nretry: x\ndata\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, junk, err := readAll(bytes.NewReader(in))
		slow, slowJunk, slowErr := readAll(iotest.OneByteReader(bytes.NewReader(in)))
		if err != nil || slowErr != nil || junk != slowJunk {
			t.Fatalf("errors %v and %v, junk %q and %q", err, slowErr, junk, slowJunk)
		}
		if diff := cmp.Diff(whole, slow); diff != "" {
			t.Fatalf("depends on how the bytes arrive:\n%s", diff)
		}
		var out strings.Builder
		for i, ev := range whole {
			whole[i].Open = false
			if ev.Name != "" {
				out.WriteString("event: " + ev.Name + "\n")
			}
			for line := range strings.SplitSeq(ev.Data, "\n") {
				out.WriteString("data: " + line + "\n")
			}
			out.WriteString("\n")
		}
		again, _, err := readAll(strings.NewReader(out.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, again); diff != "" {
			t.Fatalf("not stable:\n%s", diff)
		}
	})
}
