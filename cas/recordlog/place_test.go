package recordlog_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

func rec(n int) recordlog.Record {
	return recordlog.Record{Type: 7, Version: 1, Payload: fmt.Appendf(nil, "record %d", n)}
}

// replayed opens a log from a place and returns what it replays.
func replayed(t *testing.T, disk vfs.FS, from recordlog.Position) (*recordlog.Log, []recordlog.Record) {
	t.Helper()
	var out []recordlog.Record
	l, _, err := recordlog.Open(t.Context(), disk, recordlog.Options{SegmentSize: 200, From: from}, func(r recordlog.Record) error {
		out = append(out, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, out
}

func TestPlaces(t *testing.T) {
	disk := crashfs.New()
	l, _ := replayed(t, disk, recordlog.Position{})
	var places []recordlog.Position
	for n := range 20 { // over several segments
		at, err := l.AppendAt(t.Context(), rec(2*n), rec(2*n+1))
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, at)
		if r, err := l.ReadAt(at); err != nil || string(r.Payload) != string(rec(2*n).Payload) || r.At != at {
			t.Fatalf("read at %v: %q %v", at, r.Payload, err)
		}
	}
	end := l.End()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(places, func(a, b recordlog.Position) int {
		if a.Before(b) {
			return -1
		}
		return 1
	}) || places[19].Segment < 3 {
		t.Errorf("places %v", places)
	}
	for n, at := range places {
		l, out := replayed(t, disk, at)
		if want := 40 - 2*n; len(out) != want || out[0].At != at {
			t.Errorf("from %v: %d records, want %d", at, len(out), want)
		}
		if l.End() != end {
			t.Errorf("from %v the log ends at %v, want %v", at, l.End(), end)
		}
		if _, err := l.ReadAt(places[0]); err != nil {
			t.Errorf("what is before the start of replay cannot be read: %v", err)
		}
		var damage *recordlog.DamageError
		if _, err := l.ReadAt(recordlog.Position{Segment: at.Segment, Offset: at.Offset + 1}); !errors.As(err, &damage) {
			t.Errorf("read between records: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l, out := replayed(t, disk, end)
	if len(out) != 0 {
		t.Errorf("from the end %d records are replayed", len(out))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	beyond := recordlog.Position{Segment: end.Segment, Offset: end.Offset + 1}
	if _, _, err := recordlog.Open(t.Context(), disk, recordlog.Options{From: beyond}, func(recordlog.Record) error { return nil }); err == nil {
		t.Error("a log was opened from behind its end")
	}
}

func TestDeferredComeFirst(t *testing.T) {
	disk := crashfs.New()
	l, _ := replayed(t, disk, recordlog.Position{})
	for n := range 2 {
		if err := l.Defer(rec(n)); err != nil {
			t.Fatal(err)
		}
	}
	at, err := l.AppendAt(t.Context(), rec(2))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := l.ReadAt(at); err != nil || string(r.Payload) != "record 2" {
		t.Errorf("the place of an append after deferred records: %q %v", r.Payload, err)
	}
	if err := errors.Join(l.Defer(rec(3)), l.Close()); err != nil {
		t.Fatal(err)
	}
	if err := l.Defer(rec(4)); !errors.Is(err, recordlog.ErrClosed) {
		t.Errorf("defer after close: %v", err)
	}
	l, out := replayed(t, disk, recordlog.Position{})
	defer l.Close()
	for n, r := range out {
		if string(r.Payload) != fmt.Sprintf("record %d", n) {
			t.Errorf("record %d is %q", n, r.Payload)
		}
	}
	if len(out) != 4 {
		t.Errorf("%d records", len(out))
	}
}

func TestCheckpoint(t *testing.T) {
	disk := crashfs.New()
	if _, _, err := recordlog.LoadCheckpoint(disk); !errors.Is(err, recordlog.ErrNoCheckpoint) {
		t.Errorf("none: %v", err)
	}
	l, _ := replayed(t, disk, recordlog.Position{})
	for n := range 9 {
		if err := l.Append(t.Context(), rec(n)); err != nil {
			t.Fatal(err)
		}
	}
	at := l.End()
	if err := errors.Join(l.Append(t.Context(), rec(9)), l.Close(), recordlog.SaveCheckpoint(disk, at, []byte("one"), nil, []byte("three"))); err != nil {
		t.Fatal(err)
	}
	place, sections, err := recordlog.LoadCheckpoint(disk)
	if err != nil || place != at || len(sections) != 3 || string(sections[0]) != "one" || len(sections[1]) != 0 || string(sections[2]) != "three" {
		t.Errorf("loaded %v %q %v", place, sections, err)
	}
	l, out := replayed(t, disk, place)
	if len(out) != 1 || string(out[0].Payload) != "record 9" {
		t.Errorf("behind the checkpoint: %v", out)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := vfs.ReadFile(disk, "checkpoint", -1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 4
		if err := vfs.WriteFile(disk, "checkpoint", bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := recordlog.LoadCheckpoint(disk); !errors.Is(err, recordlog.ErrNoCheckpoint) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
	}
	for _, beyond := range []recordlog.Position{{Segment: at.Segment + 9, Offset: at.Offset}, {Segment: at.Segment, Offset: 1 << 30}} {
		if err := recordlog.SaveCheckpoint(disk, beyond); err != nil {
			t.Fatal(err)
		}
		if _, _, err := recordlog.LoadCheckpoint(disk); !errors.Is(err, recordlog.ErrNoCheckpoint) {
			t.Errorf("a checkpoint of more than the log has: %v", err)
		}
	}
}
