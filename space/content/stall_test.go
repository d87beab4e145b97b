package content_test

import (
	"testing"

	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/testkit/crashfs"
)

// While the disk does not answer one change, what is known already is answered.
func TestReadsDoNotWaitForAStalledChange(t *testing.T) {
	disk := crashfs.New()
	d := openDesk(t, disk, "/space")
	ctx := t.Context()
	d.save(t, learner, "w1", "a.md", "one\n")
	d.save(t, learner, "w2", "b.md", "two\n")
	fault, entered, release := crashfs.Stall("syncdir", "")
	disk.SetFault(fault)
	done := make(chan error, 1)
	go func() {
		_, err := d.Write(ctx, agent, content.Write{ID: "w3", Target: content.At("a.md"), Text: "three\n", Base: at("one\n")})
		done <- err
	}()
	<-entered
	if list, err := d.List(ctx, "."); err != nil || len(list) != 2 {
		t.Errorf("list: %v %v", list, err)
	}
	if doc, err := d.ReadText(ctx, content.At("b.md")); err != nil || doc.Text != "two\n" {
		t.Errorf("read: %+v %v", doc, err)
	}
	if h, err := d.History(ctx, content.At("b.md"), 0, ""); err != nil || len(h.Revisions) != 1 {
		t.Errorf("history: %+v %v", h, err)
	}
	if o, _, err := d.Operation("w3"); err != nil || o.Status != content.Prepared {
		t.Errorf("the change: %+v %v", o, err)
	}
	select {
	case err := <-done:
		t.Fatalf("the change was answered before the disk did: %v", err)
	default:
	}
	release()
	disk.SetFault(nil)
	if err := <-done; err != nil || d.on(t, "a.md") != "three\n" {
		t.Errorf("the change: %v %q", err, d.on(t, "a.md"))
	}
}
