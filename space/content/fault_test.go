package content_test

import (
	"maps"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/testkit/crashfs"
)

// Each call of the disk fails in turn, with every error, in every last change of each story. The change then fails with a code and what
// was there stays, or it is done; after the space is opened again it is one or the other too, and the same change under a new id succeeds.
func TestEveryCallFails(t *testing.T) {
	kinds := []error{syscall.EIO, syscall.ENOSPC, crashfs.ErrShortWrite}
	if os.Getenv("REPA_TEST") == "long" {
		kinds = crashfs.Errors()
	}
	faults := 0
	for name, story := range deeds {
		for _, kind := range kinds {
			for n := 1; ; n++ {
				reached := failAt(t, name, story, n, kind)
				if !reached || t.Failed() {
					break
				}
				faults++
			}
		}
	}
	t.Logf("%d faults", faults)
	if faults < 100 && !t.Failed() {
		t.Errorf("%d faults prove nothing", faults)
	}
}

// failAt fails the n-th call of the last change and reports whether there was one.
func failAt(t *testing.T, name string, story []deed, n int, kind error) (reached bool) {
	t.Helper()
	disk := crashfs.New()
	d, err := openOn(t.Context(), disk, "/space")
	if err != nil {
		t.Fatal(err)
	}
	last := story[len(story)-1]
	for _, step := range story[:len(story)-1] {
		if err := step.do(t.Context(), d); err != nil {
			t.Fatalf("%s: %s: %v", name, step.id, err)
		}
	}
	before := tree(t, d.root, ".")
	at := disk.Calls() + n
	disk.SetFault(func(c crashfs.Call) error {
		if c.N == at {
			reached = true
			return kind
		}
		return nil
	})
	failed := last.do(t.Context(), d)
	disk.SetFault(nil)
	now := tree(t, d.root, ".")
	o, _, known := d.Operation(last.id)
	where := name + " " + last.id
	switch {
	case failed == nil && (known != nil || o.Status != content.Committed):
		t.Errorf("%s: call %d failed with %v, was done and is %s %v", where, n, kind, o.Status, known)
	case failed != nil && code(failed) == "recovery_required":
		t.Errorf("%s: call %d failed with %v and left the files between: %v", where, n, kind, failed)
	case failed != nil && !maps.Equal(before, now):
		t.Errorf("%s: call %d failed with %v (%v) and changed %s", where, n, kind, failed, cmp.Diff(before, now))
	case failed != nil && len(code(failed)) > 20 && code(failed)[:8] == "uncoded:":
		t.Errorf("%s: call %d: %v has no code", where, n, failed)
	}
	if err := d.close(); err != nil && failed == nil {
		t.Errorf("%s: close after call %d failed with %v: %v", where, n, kind, err)
	}
	again, err := openOn(t.Context(), disk, "/space")
	if err != nil {
		t.Errorf("%s: open after call %d failed with %v: %v", where, n, kind, err)
		return reached
	}
	defer func() {
		if err := again.close(); err != nil {
			t.Error(err)
		}
	}()
	if later := tree(t, again.root, "."); !maps.Equal(now, later) {
		t.Errorf("%s: call %d failed with %v; opening again changed %s", where, n, kind, cmp.Diff(now, later))
	}
	if failed != nil {
		retried := last
		if o, _, err := again.Operation(last.id); err == nil && o.Status == content.Committed {
			t.Errorf("%s: call %d failed with %v and is committed after all", where, n, kind)
		}
		if _, _, err := again.Operation(last.id); code(err) == "not_found" {
			if err := retried.do(t.Context(), again); err != nil {
				t.Errorf("%s: after call %d failed with %v, the retry: %v", where, n, kind, err)
			}
		}
	}
	return reached
}
