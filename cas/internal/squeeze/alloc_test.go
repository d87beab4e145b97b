//go:build !race

package squeeze_test

import (
	"testing"

	"github.com/repa-app/repa/cas/internal/squeeze"
)

// Under the race detector a sync.Pool forgets at random, so this test is not built there.
func TestNothingIsAllocatedWhenThereIsRoom(t *testing.T) {
	for _, s := range sources {
		record, ok := squeeze.Encode(nil, s.data)
		var scratch []byte
		if n := testing.AllocsPerRun(20, func() { scratch, _ = squeeze.Encode(scratch[:0], s.data) }); n != 0 {
			t.Errorf("%s: Encode allocates %v times", s.name, n)
		}
		if !ok {
			continue
		}
		back := make([]byte, 0, len(s.data))
		if n := testing.AllocsPerRun(20, func() { back, _ = squeeze.Decode(back[:0], record, len(s.data)) }); n != 0 {
			t.Errorf("%s: Decode allocates %v times", s.name, n)
		}
	}
}
