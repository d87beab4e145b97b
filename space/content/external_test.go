package content_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/text"
)

func TestMaterialsOutside(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, book, other := filepath.Join(base, "space"), filepath.Join(base, "book.md"), filepath.Join(base, "other.md")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(book, []byte("# Book\n"), 0o600), os.WriteFile(other, []byte("other\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	d := deskIn(t, dir)
	ctx := t.Context()
	at := catalog.Location{Kind: catalog.External, Path: book}
	_, err = d.Associate(ctx, agent, content.Associate{ID: "x1", Location: at, Role: catalog.Material, Item: "X"})
	wantCode(t, err, "permission_required") // a model grants nothing
	_, err = d.ReadText(ctx, content.Target{Path: book, External: true})
	wantCode(t, err, "permission_required")
	origin := &catalog.Origin{Kind: catalog.URL, URL: "https://example.org/book", RetrievedAt: 5}
	if _, err := d.Associate(ctx, learner, content.Associate{ID: "r1", Location: at, Role: catalog.Material, Item: "M", Origin: origin}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if doc, err := d.ReadText(ctx, content.Target{ID: "M"}); err != nil || doc.Text != "# Book\n" {
			t.Errorf("%+v %v", doc, err)
		}
		if i, err := d.Get(ctx, content.Target{ID: "M"}); err != nil || i.Status != content.Available || i.Size != 7 || i.Body == nil {
			t.Errorf("%+v %v", i, err)
		}
		d.reopen(t)
	}
	list, err := d.List(ctx, ".")
	if err != nil || len(list) != 1 || list[0].ID != "M" || list[0].Status != content.Available {
		t.Errorf("list %+v %v", list, err)
	}
	for name, err := range map[string]error{
		"written":      second(d.Write(ctx, learner, content.Write{ID: "x2", Target: content.Target{ID: "M"}, Text: "x", Base: none})),
		"edited":       third(d.Edit(ctx, learner, content.Edits{ID: "x3", Target: content.Target{ID: "M"}, Edits: []text.Edit{{Old: "Book", New: "x"}}})),
		"another file": second(d.ReadText(ctx, content.Target{Path: other, External: true})),
	} {
		if code(err) != "permission_required" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An id that conflicts leaks no grant.
	_, err = d.Associate(ctx, learner, content.Associate{ID: "r1", Location: catalog.Location{Kind: catalog.External, Path: other}, Role: catalog.Material})
	wantCode(t, err, "operation_id_conflict")
	structure, err := d.structural(ctx, content.Target{ID: "M"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Collect(ctx, learner, content.Collect{ID: "c1", Target: content.Target{ID: "M"}, Destination: "books/book.md", Base: structure}); err != nil {
		t.Fatal(err)
	}
	i, err := d.Get(ctx, content.Target{ID: "M"})
	if err != nil || i.Location.Path != "books/book.md" || i.Origin == nil || i.Origin.URL != origin.URL || d.on(t, "books/book.md") != "# Book\n" {
		t.Errorf("collected: %+v %v", i, err)
	}
	if data, err := os.ReadFile(book); err != nil || string(data) != "# Book\n" {
		t.Errorf("the original: %q %v", data, err)
	}
	if _, err := d.Remove(ctx, learner, content.Remove{ID: "x4", Target: content.Target{ID: "M"}, Base: revision("# Book\n")}); code(err) != "invalid_input" {
		t.Errorf("a material was deleted: %v", err)
	}
	if structure, err = d.structural(ctx, content.Target{ID: "M"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Remove(ctx, learner, content.Remove{ID: "d1", Target: content.Target{ID: "M"}, Base: structure, Detach: true}); err != nil {
		t.Error(err)
	}
	if i, err := d.Get(ctx, content.Target{ID: "M"}); err != nil || i.Status != content.DetachedContent || d.on(t, "books/book.md") == "-" {
		t.Errorf("detached: %+v %v", i, err)
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// A document in another encoding keeps every byte that an edit does not name.
func TestEditsKeepTheEncoding(t *testing.T) {
	d := newDesk(t)
	// GB18030: 素数是什么？ CRLF 合数呢？
	gb := "\xcb\xd8\xca\xfd\xca\xc7\xca\xb2\xc3\xb4\xa3\xbf\r\n\xba\xcf\xca\xfd\xc4\xd8\xa3\xbf"
	d.outside(t, "gb.txt", gb)
	doc, err := d.ReadText(t.Context(), content.At("gb.txt"))
	if err != nil || doc.Encoding != text.GB18030 || doc.Text != "素数是什么？\r\n合数呢？" {
		t.Fatalf("%+v %v", doc, err)
	}
	_, _, err = d.Edit(t.Context(), agent, content.Edits{ID: "e1", Target: content.At("gb.txt"), Edits: []text.Edit{{Old: "合数呢", New: "质数呢"}}})
	if want := gb[:14] + "\xd6\xca\xca\xfd\xc4\xd8\xa3\xbf"; err != nil || d.on(t, "gb.txt") != want {
		t.Errorf("%x %v, want %x", d.on(t, "gb.txt"), err, want)
	}
	d.save2(t, "w1", "gb.txt", "新的内容\r\n")
	if got := d.on(t, "gb.txt"); got != "\xd0\xc2\xb5\xc4\xc4\xda\xc8\xdd\r\n" {
		t.Errorf("written whole: %x", got)
	}
	page, err := d.Read(t.Context(), content.PageRequest{Target: content.At("gb.txt")})
	if err != nil || !page.IsText || page.Text != "新的内容\r\n" || page.TotalLines != 1 {
		t.Errorf("page %+v %v", page, err)
	}
}

// save2 writes a file whose bytes are not those of the text.
func (d *desk) save2(t testing.TB, id, name, s string) {
	t.Helper()
	w := content.Write{ID: id, Target: content.At(name), Text: s, Base: content.Base{Revision: revision(d.on(t, name))}}
	if _, err := d.Write(t.Context(), learner, w); err != nil {
		t.Fatal(err)
	}
}

// A save whose base is older is joined with what came in between, or both versions are kept.
func TestMergedSave(t *testing.T) {
	d := newDesk(t)
	d.save(t, learner, "w1", "a.md", "one\ntwo\nthree\n")
	d.save(t, agent, "w2", "a.md", "ONE\ntwo\nthree\n")
	w := content.Write{ID: "m1", Target: content.At("a.md"), Text: "one\ntwo\nTHREE\n", Base: at("one\ntwo\nthree\n"), Merge: true}
	if _, err := d.Write(t.Context(), learner, w); err != nil || d.on(t, "a.md") != "ONE\ntwo\nTHREE\n" {
		t.Errorf("joined: %v %q", err, d.on(t, "a.md"))
	}
	w.ID, w.Text = "m2", "1\ntwo\nthree\n"
	_, err := d.Write(t.Context(), learner, w)
	wantCode(t, err, "revision_conflict")
	var detailed interface{ Details() any }
	if !errors.As(err, &detailed) {
		t.Fatal(err)
	}
	details := detailed.Details().(map[string]any)
	if d.bytes(t, details["yours"].(string)) != w.Text || d.bytes(t, details["actual"].(string)) != "ONE\ntwo\nTHREE\n" {
		t.Errorf("both versions are kept: %v", details)
	}
}
