package recordlog_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func open(fsys vfs.FS, size int64) (*recordlog.Log, []recordlog.Record, int64, error) {
	var got []recordlog.Record
	l, cut, err := recordlog.Open(ctx, fsys, recordlog.Options{SegmentSize: size}, func(r recordlog.Record) error {
		got = append(got, r)
		return nil
	})
	return l, got, cut, err
}

func record(text string) recordlog.Record {
	return recordlog.Record{Type: 1, Version: 1, Payload: []byte(text)}
}

func texts(records []recordlog.Record) string {
	var out []string
	for _, r := range records {
		out = append(out, string(r.Payload))
	}
	return strings.Join(out, " ")
}

func TestRoundTripOverSegments(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := crashfs.New()
		size := rapid.Int64Range(16, 200).Draw(rt, "segment size")
		var want []recordlog.Record
		for range rapid.IntRange(1, 4).Draw(rt, "sessions") {
			l, got, cut, err := open(disk, size)
			if err != nil || cut != 0 {
				rt.Fatal(cut, err)
			}
			if len(got) != len(want) {
				rt.Fatalf("replayed %d of %d records", len(got), len(want))
			}
			for i := range want {
				if got[i].Type != want[i].Type || got[i].Version != want[i].Version || !bytes.Equal(got[i].Payload, want[i].Payload) {
					rt.Fatalf("record %d is %v, want %v", i, got[i], want[i])
				}
			}
			for range rapid.IntRange(0, 5).Draw(rt, "appends") {
				var call []recordlog.Record
				for range rapid.IntRange(1, 3).Draw(rt, "records") {
					call = append(call, recordlog.Record{
						Type:    rapid.Byte().Draw(rt, "type"),
						Version: rapid.Byte().Draw(rt, "version"),
						Payload: rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(rt, "payload"),
					})
				}
				if err := l.Append(ctx, call...); err != nil {
					rt.Fatal(err)
				}
				want = append(want, call...)
			}
			if err := l.Close(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func TestGolden(t *testing.T) {
	disk := crashfs.New()
	l, _, _, err := open(disk, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(ctx, recordlog.Record{Type: 2, Version: 1, Payload: []byte("复习")}, recordlog.Record{Type: 3, Version: 7}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := vfs.ReadFile(disk, "0000000000000001.log", -1)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "format-1.hex")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(hex.EncodeToString(got)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if hex.EncodeToString(got)+"\n" != string(want) {
		t.Errorf("format changed:\n%x\nwant\n%s", got, want)
	}
}

// Power fails at every moment of a run of appends; whatever the disk kept, each acknowledged call is there, calls are whole and
// in order, and the log can be written again.
func TestPowerLoss(t *testing.T) {
	const rounds = 40
	states := 0
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		disk := crashfs.New()
		l, _, _, err := open(disk, 120)
		if err != nil {
			t.Fatal(err)
		}
		type state struct {
			disk  *crashfs.FS
			acked int
		}
		var crashed []state
		var mu sync.Mutex
		acked := 0
		disk.SetFault(func(crashfs.Call) error { return nil })
		for i := range 12 {
			var group sync.WaitGroup
			for j := range 1 + rng.IntN(3) {
				group.Go(func() {
					err := l.Append(ctx, record(fmt.Sprintf("%d.%d.a", i, j)), record(fmt.Sprintf("%d.%d.b", i, j)))
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					acked++
					mu.Unlock()
				})
			}
			mu.Lock()
			before := acked
			mu.Unlock()
			crashed = append(crashed, state{disk.Crash(rng), before})
			group.Wait()
			crashed = append(crashed, state{disk.Crash(rng), acked}, state{disk.Crash(nil), acked})
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for _, s := range crashed {
			states++
			l, got, _, err := open(s.disk, 120)
			if err != nil {
				t.Fatalf("seed %d: open after the crash: %v", seed, err)
			}
			if len(got)%2 != 0 || len(got)/2 < s.acked {
				t.Fatalf("seed %d: %d records for %d acknowledged calls: %s", seed, len(got), s.acked, texts(got))
			}
			for i := 0; i < len(got); i += 2 {
				a, b := string(got[i].Payload), string(got[i+1].Payload)
				if a[:len(a)-1] != b[:len(b)-1] {
					t.Fatalf("seed %d: a call was torn: %s", seed, texts(got))
				}
			}
			if err := l.Append(ctx, record("more")); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l, again, cut, err := open(s.disk, 120)
			if err != nil || cut != 0 || len(again) != len(got)+1 {
				t.Fatalf("seed %d: second open: %d records, cut %d, %v", seed, len(again), cut, err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d crash states opened", states)
}

func written(t *testing.T, calls ...string) *crashfs.FS {
	t.Helper()
	disk := crashfs.New()
	l, _, _, err := open(disk, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if err := l.Append(ctx, record(c)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return disk
}

// Made by an independent implementation of the format.
const newerHeader = "726570616c6f67000200000050a56bbe"

const segment = "0000000000000001.log"

// A tail cut at every byte loses only the record it cuts, and its bytes are kept beside the log.
func TestTornTailAtEveryByte(t *testing.T) {
	disk := written(t, "one", "two")
	whole, err := vfs.ReadFile(disk, segment, -1)
	if err != nil {
		t.Fatal(err)
	}
	const first = 16 + 20 + 3
	for size := first; size < len(whole); size++ {
		disk := written(t, "one", "two")
		f, err := disk.OpenFile(segment, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(int64(size)), f.Sync()); err != nil {
			t.Fatal(err)
		}
		l, got, cut, err := open(disk, 0)
		if err != nil || texts(got) != "one" || cut != int64(size-first) {
			t.Fatalf("cut at %d: %q, %d moved aside, %v", size, texts(got), cut, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if size > first {
			aside, err := vfs.ReadFile(disk, fmt.Sprintf("%s.torn-%d", segment, first), -1)
			if err != nil || !bytes.Equal(aside, whole[first:size]) {
				t.Errorf("cut at %d: kept %q, %v", size, aside, err)
			}
		}
	}
}

// Any flipped bit before the last record is an error that names the place, and changes no file.
func TestFlippedBits(t *testing.T) {
	n := 0
	for offset := 0; offset < 16+2*(20+3); offset++ {
		for bit := range uint(8) {
			disk := written(t, "one", "two", "three")
			disk.Flip(segment, offset, bit)
			before, _ := vfs.ReadFile(disk, segment, -1)
			_, got, _, err := open(disk, 0)
			var damage *recordlog.DamageError
			if !errors.As(err, &damage) {
				t.Fatalf("bit %d of byte %d flipped: replayed %q, %v", bit, offset, texts(got), err)
			}
			if damage.Segment != segment || damage.Offset > int64(offset) {
				t.Errorf("byte %d flipped, reported %v", offset, damage)
			}
			if after, _ := vfs.ReadFile(disk, segment, -1); !bytes.Equal(before, after) {
				t.Fatal("a damaged log was changed")
			}
			n++
		}
	}
	t.Logf("%d bits flipped", n)
}

func TestCheckChangesNothing(t *testing.T) {
	disk := written(t, "one", "two")
	f, err := disk.OpenFile(segment, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(info.Size()-1), f.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if records, torn, err := recordlog.Check(disk); records != 1 || torn != 22 || err != nil {
			t.Errorf("%d records, %d torn, %v", records, torn, err)
		}
	}
	var damage *recordlog.DamageError
	disk = written(t, "one", "two")
	disk.Flip(segment, 20, 0)
	if _, _, err := recordlog.Check(disk); !errors.As(err, &damage) {
		t.Error(err)
	}
}

func TestMissingSegmentIsDamage(t *testing.T) {
	disk := crashfs.New()
	l, _, _, err := open(disk, 20)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := l.Append(ctx, record("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{segment, "0000000000000002.log"} {
		disk := disk.Crash(nil)
		if err := disk.Remove(name); err != nil {
			t.Fatal(err)
		}
		var damage *recordlog.DamageError
		if _, _, _, err := open(disk, 20); !errors.As(err, &damage) || damage.Segment != name {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	disk := crashfs.New()
	f, err := disk.OpenFile(segment, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	// The header of a format 2 segment of generation 1, checksum included.
	header, err := hex.DecodeString(newerHeader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(header); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := open(disk, 0); !errors.Is(err, recordlog.ErrNewerFormat) {
		t.Fatal(err)
	}
	if got, _ := vfs.ReadFile(disk, segment, -1); !bytes.Equal(got, header) {
		t.Error("a refused log was changed")
	}
}

// Every disk call of an append fails once: the caller hears it, the log takes nothing more, and after the next open every
// acknowledged record is there.
func TestEveryCallFails(t *testing.T) {
	for _, fault := range []error{errors.New("input/output error"), crashfs.ErrShortWrite} {
		for n := 1; ; n++ {
			disk := crashfs.New()
			l, _, _, err := open(disk, 30)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Append(ctx, record("kept")); err != nil {
				t.Fatal(err)
			}
			before := disk.Calls()
			disk.FailNth(n, fault)
			err = l.Append(ctx, record("lost"))
			calls := disk.Calls() - before
			disk.SetFault(nil)
			if err != nil {
				if err := l.Append(ctx, record("never")); !errors.Is(err, recordlog.ErrFailed) {
					t.Fatalf("call %d failed, the next append: %v", n, err)
				}
			}
			l.Close() // the file may be closed already
			l2, got, _, oerr := open(disk.Crash(nil), 30)
			if oerr != nil {
				t.Fatalf("call %d failed, open: %v", n, oerr)
			}
			if want := map[bool]string{true: "kept lost", false: "kept"}[err == nil]; texts(got) != want && !(err != nil && texts(got) == "kept lost") {
				t.Fatalf("call %d failed (%v): %q", n, err, texts(got))
			}
			if err := l2.Close(); err != nil {
				t.Fatal(err)
			}
			if n > calls {
				t.Logf("%d calls failed in turn with %v", calls, fault)
				break
			}
		}
	}
}

func TestAppendEndsWithItsContext(t *testing.T) {
	disk := crashfs.New()
	l, _, _, err := open(disk, 0)
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.SetFault(func(c crashfs.Call) error {
		if c.Op == "sync" {
			once.Do(func() { close(entered); <-leave })
		}
		return nil
	})
	stuck, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() { result <- l.Append(stuck, record("x")) }()
	<-entered
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("append on a stuck disk: %v", err)
	}
	close(leave)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(ctx, record("y")); !errors.Is(err, recordlog.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
}

func TestTooLargeRecord(t *testing.T) {
	disk := crashfs.New()
	l, _, _, err := open(disk, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Append(ctx, recordlog.Record{Payload: make([]byte, recordlog.MaxPayload+1)}); err == nil {
		t.Error("accepted")
	}
	if err := l.Append(ctx, record("small")); err != nil {
		t.Errorf("a refused record stopped the log: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	whole := func(calls ...string) []byte {
		disk := crashfs.New()
		l, _, _, err := open(disk, 0)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range calls {
			if err := l.Append(ctx, record(c), record(c)); err != nil {
				f.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			f.Fatal(err)
		}
		data, err := vfs.ReadFile(disk, segment, -1)
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add([]byte{})
	f.Add(whole())
	f.Add(whole("a", "bb"))
	f.Add(append(whole("a"), make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		disk := crashfs.New()
		if err := vfs.WriteFile(disk, segment, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, got, _, err := open(disk, 0)
		if err != nil {
			if after, _ := vfs.ReadFile(disk, segment, -1); !bytes.Equal(after, data) {
				t.Fatal("a refused log was changed")
			}
			return
		}
		if err := errors.Join(l.Append(ctx, record("more")), l.Close()); err != nil {
			t.Fatal(err)
		}
		l, again, cut, err := open(disk, 0)
		if err != nil || cut != 0 || len(again) != len(got)+1 {
			t.Fatalf("second open: %d of %d records, cut %d, %v", len(again), len(got)+1, cut, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
