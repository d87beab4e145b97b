package content_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/grant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	learner = content.By{Actor: content.Learner}
	agent   = content.By{Actor: content.Agent, Session: "session-1", Run: "run-1"}
)

// desk is an open engine with what it stands on.
type desk struct {
	*content.Engine
	root    vfs.FS
	store   *cas.Store
	journal *recordlog.Log
	closers []io.Closer
	disk    vfs.FS
	dir     string
}

// serial numbers the ids of all spaces.
var serial atomic.Int64

func minted() string { return fmt.Sprintf("id-%d", serial.Add(1)) }

// openOn opens the space in the folder "space" of a disk.
func openOn(ctx context.Context, disk vfs.FS, dir string) (d *desk, err error) {
	return openFrom(ctx, disk, dir, nil, recordlog.Position{})
}

// openFrom is openOn with a checkpoint, if there is one.
func openFrom(ctx context.Context, disk vfs.FS, dir string, checkpoint []byte, at recordlog.Position) (d *desk, err error) {
	d = &desk{disk: disk, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	for _, name := range []string{".repa/journal", ".repa/cas"} {
		if err := vfs.MkdirAll(disk, name, 0o700); err != nil {
			return d, err
		}
	}
	sub := func(name string) vfs.FS {
		if err != nil {
			return nil
		}
		var f vfs.FS
		if f, err = disk.Sub(name); err == nil {
			d.closers = append(d.closers, f)
		}
		return f
	}
	d.root = sub(".")
	journal, store := sub(".repa/journal"), sub(".repa/cas")
	if err != nil {
		return d, err
	}
	if d.store, err = cas.Open(ctx, "cas", cas.Options{FS: store}); err != nil {
		return d, err
	}
	own, err := d.root.Lstat(".repa")
	if err != nil {
		return d, err
	}
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	d.Engine = content.New(content.Options{SpaceID: "space-1", Path: dir, Root: d.root, Own: own, Store: d.store, NewID: minted,
		Grants: grant.New(filepath.Join(dir, "..", "config")), Now: func() time.Time { now = now.Add(time.Second); return now }})
	if checkpoint != nil {
		if err := d.Engine.RestoreCheckpoint(checkpoint); err != nil {
			return d, err
		}
	}
	if d.journal, _, err = recordlog.Open(ctx, journal, recordlog.Options{From: at}, d.Engine.Replay); err != nil {
		return d, err
	}
	return d, d.Engine.Start(ctx, d.journal)
}

func (d *desk) close() error {
	var errs []error
	if d.Engine != nil {
		errs = append(errs, d.Engine.Close())
	}
	if d.journal != nil {
		errs = append(errs, d.journal.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	for _, c := range d.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func openDesk(t testing.TB, disk vfs.FS, dir string) *desk {
	t.Helper()
	d, err := openOn(t.Context(), disk, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	})
	return d
}

// reopen closes the space and opens it again.
func (d *desk) reopen(t testing.TB) {
	t.Helper()
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openOn(t.Context(), d.disk, d.dir)
	if err != nil {
		t.Fatal(err)
	}
	*d = *again
}

// newDesk is a new space in a temporary folder.
func newDesk(t testing.TB) *desk {
	t.Helper()
	dir := t.TempDir()
	disk, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	return openDesk(t, disk, dir)
}

// outside writes a file as another program would.
func (d *desk) outside(t testing.TB, name, text string) {
	t.Helper()
	if err := vfs.MkdirAll(d.root, path.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(d.root, name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// on is what stands in a file; "-" when there is none.
func (d *desk) on(t testing.TB, name string) string {
	t.Helper()
	data, err := vfs.ReadFile(d.root, name, -1)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tree lists the files with their text, and the folders.
func tree(t testing.TB, root vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := root.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case name == ".repa":
		case e.IsDir():
			out[name+"/"] = ""
			for k, v := range tree(t, root, name) {
				out[k] = v
			}
		default:
			data, err := vfs.ReadFile(root, name, -1)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(data)
		}
	}
	return out
}

func code(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	if err != nil {
		return "uncoded: " + err.Error()
	}
	return ""
}

func wantCode(t testing.TB, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("code %q (%v), want %q", got, err, want)
	}
}

// save writes a whole file, whatever is there.
func (d *desk) save(t testing.TB, by content.By, id, name, text string) content.Result {
	t.Helper()
	base := content.Base{Absent: true}
	if old := d.on(t, name); old != "-" {
		base = content.Base{Revision: cas.Sum([]byte(old)).String()}
	}
	r, err := d.Write(t.Context(), by, content.Write{ID: id, Target: content.At(name), Text: text, Base: base})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func revision(text string) string { return cas.Sum([]byte(text)).String() }
