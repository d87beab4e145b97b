package cas_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/repa-app/repa/cas"
)

// processEnv says what TestMeasuredProcess is to do, and in which folder.
const processEnv = "REPA_BENCH_PROCESS"

// measured is what the kernel says of a process, in bytes.
type measured struct{ resident, peak int64 }

// inProcess does something in a process of its own and returns its memory before and at the end of it.
func inProcess(b testing.TB, what, dir string) (before, after measured) {
	b.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0], "-test.run", "^TestMeasuredProcess$", "-test.count", "1")
	cmd.Env = append(os.Environ(), processEnv+"="+what+":"+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%s in a process: %v\n%s", what, err, out)
	}
	for _, v := range []struct {
		mark string
		to   *measured
	}{{"before", &before}, {"after", &after}} {
		_, line, _ := bytes.Cut(out, []byte("measured "+v.mark+" "))
		if _, err := fmt.Sscan(string(line), &v.to.resident, &v.to.peak); err != nil {
			b.Fatalf("%s in a process said %q: %v", what, out, err)
		}
	}
	return before, after
}

// TestMeasuredProcess is the body of the processes of inProcess.
func TestMeasuredProcess(t *testing.T) {
	what, dir, ok := strings.Cut(os.Getenv(processEnv), ":")
	if !ok {
		t.Skip("only within a measurement")
	}
	tell(t, "before")
	s, err := cas.Open(ctx, filepath.Join(dir, "cas"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	switch what {
	case "open":
	case "ingest":
		tree := filepath.Join(dir, "tree")
		names, err := filesBelow(tree)
		if err == nil {
			err = ingest(s, tree, names, map[string]cas.ID{})
		}
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatalf("%s: what is that?", what)
	}
	tell(t, "after")
}

// tell says what memory the process has, without what the collector could give back at once.
func tell(t *testing.T, mark string) {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("this system does not tell the memory of a process")
	}
	value := func(name string) int64 {
		_, line, _ := strings.Cut(string(status), name+":")
		kib, err := strconv.ParseInt(strings.Fields(line)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return kib << 10
	}
	fmt.Printf("measured %s %d %d\n", mark, value("VmRSS"), value("VmHWM"))
}

func filesBelow(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	return names, err
}
