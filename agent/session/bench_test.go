package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/vfs"
)

const long = 100_000 // entries: the largest session that performance goals speak of

// writeLong makes a session of n entries of about 450 bytes; compacted leaves only its last entries in the context.
func writeLong(tb testing.TB, n int, compacted bool) (vfs.FS, string) {
	tb.Helper()
	dir := tb.TempDir()
	var b strings.Builder
	b.WriteString(header)
	parent := "null"
	text := strings.Repeat("a learner asks about primes ", 8)
	for i := range n {
		id := fmt.Sprintf("%08x", i)
		switch {
		case compacted && i == n-4:
			fmt.Fprintf(&b, `{"type":"compaction","id":"%s","parentId":%s,"timestamp":"2026-12-01T08:00:00.000Z","summary":"so far","firstKeptEntryId":"%08x","tokensBefore":9}`+"\n", id, parent, i-2)
		case i%2 == 0:
			fmt.Fprintf(&b, `{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-12-01T08:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"%s"}],"timestamp":1796082221703}}`+"\n", id, parent, text)
		default:
			fmt.Fprintf(&b, `{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-12-01T08:00:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":"%s"}],"api":"faux","provider":"faux","model":"faux-1","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1796082221703}}`+"\n", id, parent, text)
		}
		parent = `"` + id + `"`
	}
	if err := os.WriteFile(filepath.Join(dir, "long.jsonl"), []byte(b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	fsys, err := vfs.OS(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { fsys.Close() })
	return fsys, "long.jsonl"
}

// One more entry costs the same in a session of 100,000 entries as in a short one: nothing is walked again. The measure is
// memory, which does not depend on how busy the machine is; walking or copying the branch would allocate megabytes.
func TestAppendDoesNotWalk(t *testing.T) {
	bytes := func(n int) uint64 {
		fsys, name := writeLong(t, n, false)
		s := open(t, fsys, name)
		for range 3 { // the slices of a file just opened are full and grow once
			add(t, s, session.NewMessage(user("grow"), ""))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const appends = 20
		for range appends {
			add(t, s, session.NewMessage(user("one more"), ""))
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / appends
	}
	if short, grown := bytes(100), bytes(long); grown > 2*short+16<<10 {
		t.Errorf("an append allocates %d bytes in a long session, %d in a short one", grown, short)
	}
}

func BenchmarkOpen100k(b *testing.B) {
	fsys, name := writeLong(b, long, false)
	b.ReportAllocs()
	for b.Loop() {
		s, err := session.Open(fsys, name, session.Source{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkPeek100k(b *testing.B) {
	fsys, name := writeLong(b, long, false)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := session.Peek(fsys, name); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPrompt appends a prompt and an answer to a session with a small context and rebuilds the context after each: twice
// one write and one sync. The bound is the same two writes and syncs on a bare file.
func BenchmarkPrompt(b *testing.B) {
	for _, n := range []int{100, long} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fsys, name := writeLong(b, n, true)
			s := open(b, fsys, name)
			for b.Loop() {
				add(b, s, session.NewMessage(user("What is a prime?"), "r"))
				s.Snapshot().Context()
				add(b, s, session.NewMessage(assistant("A number with two divisors."), "r"))
				s.Snapshot().Context()
			}
		})
	}
	b.Run("bound", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "f"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		line := make([]byte, 250)
		for b.Loop() {
			for range 2 {
				if _, err := f.Write(line); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
