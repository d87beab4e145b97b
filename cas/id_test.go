package cas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas"
)

// The first two vectors are from the official BLAKE3 test vectors (input length 0 and 1: bytes 0, 1, 2 … modulo 251).
func TestSumVectors(t *testing.T) {
	for _, tc := range []struct {
		data []byte
		want string
	}{
		{nil, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
		{[]byte{0}, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
		{[]byte("间隔练习"), cas.Sum([]byte("间隔练习")).String()},
	} {
		if got := cas.Sum(tc.data).String(); got != tc.want {
			t.Errorf("Sum(%q) = %s, want %s", tc.data, got, tc.want)
		}
	}
}

func TestParseIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := cas.Sum(rapid.SliceOf(rapid.Byte()).Draw(t, "data"))
		text, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		var back cas.ID
		if err := json.Unmarshal(text, &back); err != nil || back != id {
			t.Fatalf("%s came back as %s: %v", id, back, err)
		}
	})
}

func TestParseIDRefuses(t *testing.T) {
	good := cas.Sum(nil).String()
	for _, text := range []string{"", good[1:], good + "0", strings.ToUpper(good), "g" + good[1:], " " + good[1:]} {
		if id, err := cas.ParseID(text); err == nil || !id.IsZero() {
			t.Errorf("ParseID(%q) = %s, %v; want an error", text, id, err)
		}
	}
}

func TestSumReaderIsSum(t *testing.T) {
	for _, size := range []int{0, 1, 1024, 1 << 20, 1<<20 + 1, 3<<20 + 77} {
		data := numbered(size, size)
		id, err := cas.SumReader(t.Context(), iotest.HalfReader(bytes.NewReader(data)))
		if err != nil || id != cas.Sum(data) {
			t.Errorf("%d bytes: %s %v, want %s", size, id, err, cas.Sum(data))
		}
	}
	broken := errors.New("broken")
	if _, err := cas.SumReader(t.Context(), iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}
