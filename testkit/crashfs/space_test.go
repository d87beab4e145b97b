package crashfs_test

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/repa-app/repa/testkit/crashfs"
)

func TestSpace(t *testing.T) {
	disk := crashfs.New()
	if disk.Free() != math.MaxInt64 {
		t.Errorf("without a limit: %d", disk.Free())
	}
	disk.SetSpace(512 + 3*(4096+512)) // the root, and three files of a page
	free := disk.Free()
	f := create(t, disk, "a", "x")
	if got := free - disk.Free(); got != 4096+512 {
		t.Errorf("a file of one byte costs %d", got)
	}
	n, err := f.WriteAt(make([]byte, 16384), 0)
	if n != 12288 { // the pages for which there is room, the first included
		t.Errorf("wrote %d", n)
	}
	var named *fs.PathError
	if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &named) || named.Op != "write" {
		t.Errorf("beyond the space: %v", err)
	}
	writeAt(t, f, "y", n, 0) // what has its page can be written again
	must(t, f.Sync(), disk.SyncDir("."))
	for disk.Free() >= 512 {
		must(t, disk.Mkdir("d"+string(rune('a'+disk.Free()/512)), 0o700))
	}
	if err := disk.Mkdir("more", 0o700); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("mkdir on a full disk: %v", err)
	}
	if _, err := disk.OpenFile("more", os.O_CREATE|os.O_RDWR, 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("create on a full disk: %v", err)
	}
	must(t, disk.Rename("a", "b"), f.Sync(), disk.SyncDir(".")) // these need nothing
	if err := disk.Crash(nil).Mkdir("more", 0o700); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the disk after a crash is larger: %v", err)
	}
	must(t, disk.Remove("b"))
	if disk.Free() >= 4096 {
		t.Error("a removed file that is open was freed")
	}
	if got, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20)); err != nil || len(got) != n || got[0] != 'y' {
		t.Errorf("read %d bytes of a removed file, %v", len(got), err)
	}
	must(t, f.Truncate(4096))
	if disk.Free() < 8192 {
		t.Errorf("%d free after a cut", disk.Free())
	}
	must(t, f.Close())
	if disk.Free() < 12288 {
		t.Errorf("%d free after the last close", disk.Free())
	}
	disk.SetSpace(0)
	if disk.Free() != 0 {
		t.Errorf("%d free of nothing", disk.Free())
	}
	disk.SetSpace(-5)
	must(t, disk.Mkdir("more", 0o700))
}

// Preallocated space is there when it is needed; a hole costs nothing and promises nothing.
func TestPreallocationReserves(t *testing.T) {
	disk, f := settled(t, 0)
	hole := create(t, disk, "hole", "")
	disk.SetSpace(3*512 + 4*4096)
	must(t, f.Preallocate(3*4096), hole.Truncate(1<<30))
	if disk.Free() != 4096 {
		t.Errorf("%d free", disk.Free())
	}
	if err := f.Preallocate(5 * 4096); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("preallocated more than there is: %v", err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 3*4096 {
		t.Errorf("a preallocation that failed left %v, %v", info, err)
	}
	writeAt(t, hole, "x", 1, 1<<20)
	if _, err := hole.WriteAt([]byte("x"), 1<<21); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a hole was filled on a full disk: %v", err)
	}
	writeAt(t, f, "x", 3*4096, 0)
}

// Replacing a file by a rename frees the old one, unless it is open, and a reader of it reads on.
func TestRenameFreesWhatItReplaces(t *testing.T) {
	disk, old := settled(t, 4096)
	must(t, create(t, disk, "b", strings.Repeat("n", 4096)).Close())
	disk.SetSpace(1 << 20)
	free := disk.Free()
	must(t, disk.Rename("b", "a"))
	if disk.Free() != free {
		t.Error("freed while open")
	}
	got, err := io.ReadAll(io.NewSectionReader(old, 0, 4096))
	if err != nil || string(got) != strings.Repeat("o", 4096) {
		t.Errorf("%.10q, %v", got, err)
	}
	must(t, old.Close())
	if disk.Free() != free+4096+512 {
		t.Errorf("%d free, had %d", disk.Free(), free)
	}
}
