package content_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/text"
	"github.com/repa-app/repa/testkit/crashfs"
)

const (
	storyLimit   = 25   // steps of a story: long enough for an undo of an undo of what others changed
	shortStories = 60   // what fits into two seconds
	racedStories = 12   // the race detector makes each several times slower
	longStories  = 3000 // minutes
)

// places are where the actors meet.
var places = []string{"f/a.md", "f/b.md", "f/c.md", "g/a.md", "g/b.md", "g/c.md"}

// The learner, the agent and another program work on the same few files in any order, the power fails or the program is killed in between and in the
// middle of changes, and rubbish is collected without any grace. After every step nothing that was acknowledged or observed is lost, and nothing but
// what the step was about has changed.
func TestThreeActors(t *testing.T) {
	stories := fewer(shortStories, racedStories, longStories)
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(stories), "rapid.steps": strconv.Itoa(3 * storyLimit), "rapid.seed": os.Getenv("REPA_TEST_SEED")} {
		setFlag(t, name, value)
	}
	n := &tally{refused: map[string]int{}, operations: map[string]int{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the story that failed:\n%s\n\nmade small:\n%s", n.first, n.last)
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rt, n)
		defer w.end()
		rt.Repeat(w.actions())
	})
	t.Logf("%v", n)
	if n.undone == 0 || n.undoRefused == 0 || n.inside == 0 || stories > shortStories && (n.merged == 0 || n.recovered == 0) {
		t.Error("that proves too little")
	}
}

// setFlag gives a flag of the test binary another value unless it is "" or the tester has set it.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	chosen := value == ""
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == name })
	if chosen {
		return
	}
	f := flag.Lookup(name)
	before := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) }) // it was its value
}

// tally counts what the stories were made of.
type tally struct {
	steps, crashes, inside, twice, reopened, collected, dropped int
	outside, observed, asked                                    int
	undone, merged, undoRefused                                 int
	recovered                                                   int // operations that needed recovery, all because of the outside program
	unsure                                                      int // operations that the outside program undid at once, and a crash then
	operations, refused                                         map[string]int
	first, last                                                 string // stories that failed: as it came, and made small
}

func (n *tally) String() string {
	done, refused := 0, 0
	for _, c := range n.operations {
		done += c
	}
	for _, c := range n.refused {
		refused += c
	}
	return fmt.Sprintf("%d steps: %d operations done %v, %d refused %v; %d crashes, %d of them inside an operation, %d with another inside the recovery; %d reopened, "+
		"%d collections dropped %d objects; %d changes from outside, %d observed; %d undos done, %d of them kept later changes, %d refused; %d needed recovery; %d undone from outside; %d repetitions",
		n.steps, done, n.operations, refused, n.refused, n.crashes, n.inside, n.twice, n.reopened, n.collected, n.dropped, n.outside, n.observed, n.undone, n.merged,
		n.undoRefused, n.recovered, n.unsure, n.asked)
}

// deal is an acknowledged operation.
type deal struct {
	id      string
	repeat  func(*desk) (content.Result, error)
	answer  string // as the wire has it
	changes []content.Change
	items   []string // that it touched
	born    int      // when it was done, by the clock
}

// world is a space and what is known of it.
type world struct {
	t     *rapid.T
	outer *testing.T
	n     *tally
	disk  *crashfs.FS
	d     *desk
	step  int
	ids   int

	tree     map[string]string // what the disk has
	texts    map[string]string // revision → text, of all that the disk ever had
	deals    []*deal           // acknowledged, and standing
	observed []string          // revisions that Observe wrote down
	items    []string          // ids, as they came up
	story    []string          // what happened, for a failure that the next run does not show
	clock    int               // counts looks at the disk
	left     map[string]int    // when a path last lost its file, perhaps to another path
	waiting  *deal             // the last one, as long as nothing certainly was appended to the journal since
	strange  map[string]bool   // paths that the outside program changed after the history knew them last
}

func newWorld(outer *testing.T, t *rapid.T, n *tally) *world {
	w := &world{t: t, outer: outer, n: n, disk: crashfs.New(), texts: map[string]string{}, left: map[string]int{}, strange: map[string]bool{}}
	w.open()
	w.see()
	return w
}

func (w *world) end() {
	if story := strings.Join(w.story, "\n"); w.t.Failed() {
		w.n.last = story
		if w.n.first == "" {
			w.n.first = story
		}
	}
	if err := w.d.close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		w.outer.Error(err)
	}
}

func (w *world) note(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

func (w *world) open() {
	d, err := openOn(w.outer.Context(), w.disk, "/space")
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	w.d = d
}

func (w *world) shut() {
	if err := w.d.close(); err != nil {
		w.t.Fatalf("close: %v", err)
	}
}

// look reads the disk and remembers every text.
func (w *world) look() map[string]string {
	got := tree(w.outer, w.disk, ".")
	for name, s := range got {
		if !strings.HasSuffix(name, "/") {
			w.texts[revision(s)] = s
		}
	}
	return got
}

// see brings what is known of the disk up to date, and notes which paths lost their files.
func (w *world) see() {
	before := w.tree
	w.tree = w.look()
	w.clock++
	for name := range before {
		if _, there := w.tree[name]; !there {
			w.left[name] = w.clock
		}
	}
}

// bodyAt is the revision of a path in a tree, "" when no file is there.
func bodyAt(tree map[string]string, name string) string {
	if s, ok := tree[name]; ok {
		return revision(s)
	}
	return ""
}

// actions are the steps of a story.
func (w *world) actions() map[string]func(*rapid.T) {
	out := map[string]func(*rapid.T){"": func(*rapid.T) { w.verify() }}
	for name, f := range map[string]func(){
		"learner writes": w.write, "learner edits": func() { w.edit(learner) }, "learner moves": func() { w.transfer(true) },
		"learner copies": func() { w.transfer(false) }, "learner removes": w.remove, "learner restores": w.restore, "learner associates": w.associate,
		"learner composes": w.compose, "agent edits": func() { w.edit(w.agent()) }, "agent patches": w.patch, "agent patches more": w.patch,
		"agent undoes": w.undo, "agent undoes more": w.undo, "agent undoes again": w.undo, "agent undoes a run": w.undoRun,
		"outside changes": w.outside, "outside changes more": w.outside, "power fails": w.crash, "clean reopening": w.reopen, "collection": w.collect,
	} {
		out[name] = func(*rapid.T) {
			if w.step < storyLimit {
				f()
				w.step++
				w.n.steps++
			}
		}
	}
	return out
}

func pick[T any](w *world, what string, from []T) T {
	w.t.Helper()
	if len(from) == 0 {
		w.t.Skip("nothing to pick from")
	}
	return rapid.SampledFrom(from).Draw(w.t, what)
}

// oneIn is true once in n times.
func (w *world) oneIn(n int, what string) bool {
	return rapid.IntRange(1, n).Draw(w.t, what) == n
}

func (w *world) random() *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(w.t, "seed"), 0))
}

// files lists the files of a tree.
func files(tree map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if !strings.HasSuffix(name, "/") {
			out = append(out, name)
		}
	}
	return out
}

// drawText is a text of few lines. Two of them often have most lines in common, so that changes of both can be told apart or not.
func (w *world) drawText() string {
	var out strings.Builder
	for i := range 7 {
		if letter := rapid.SampledFrom([]string{"a", "a", "b", "a", ""}).Draw(w.t, "line"); letter != "" {
			fmt.Fprintf(&out, "%d: %s\n", i, letter)
		}
	}
	return out.String()
}

// drawEdit is a change of one line of a text.
func (w *world) drawEdit(s string) text.Edit {
	old := pick(w, "line", strings.SplitAfter(strings.TrimSuffix(s, "\n"), "\n"))
	old = strings.TrimSuffix(old, "\n") + "\n"
	number, _, _ := strings.Cut(strings.TrimSuffix(old, "\n"), ":")
	next := rapid.SampledFrom([]string{number + ": d\n", number + ": e\n", old + number + "½: new\n"}).Draw(w.t, "becomes")
	return text.Edit{Old: old, New: next}
}

func (w *world) agent() content.By {
	return content.By{Actor: content.Agent, Session: "session-1", Run: rapid.SampledFrom([]string{"run-1", "run-2"}).Draw(w.t, "run")}
}

// target names a path, or the item that is there.
func (w *world) target(name string) content.Target {
	if i, err := w.d.Inspect(w.outer.Context(), content.At(name)); err == nil && i.ID != "" && w.oneIn(2, "by id") {
		return content.Target{ID: i.ID}
	}
	return content.At(name)
}

// base is the revision of a path, or now and then something else.
func (w *world) base(name string) content.Base {
	now := bodyAt(w.tree, name)
	if w.oneIn(8, "stale") {
		now = pick(w, "base", append(slices.Sorted(maps.Keys(w.texts)), ""))
	}
	if now == "" {
		return none
	}
	return content.Base{Revision: now}
}

// structure is the structural revision of a target that is there.
func (w *world) structure(t content.Target) string {
	i, err := w.d.Get(w.outer.Context(), t)
	if err != nil || i.Revision == nil {
		w.t.Fatalf("get %s: %v", t, err)
	}
	return *i.Revision
}

func (w *world) write() {
	name := pick(w, "path", places)
	in := content.Write{Target: w.target(name), Text: w.drawText(), Base: w.base(name), Merge: w.oneIn(2, "merge")}
	w.attempt("write", func(d *desk, id string) (content.Result, error) {
		in.ID = id
		return d.Write(w.outer.Context(), learner, in)
	})
}

func (w *world) edit(by content.By) {
	name := pick(w, "path", files(w.tree))
	if w.tree[name] == "" {
		w.t.Skip("an empty file has no line")
	}
	in := content.Edits{Target: w.target(name), Edits: []text.Edit{w.drawEdit(w.tree[name])}}
	w.attempt("edit", func(d *desk, id string) (content.Result, error) {
		in.ID = id
		r, _, err := d.Edit(w.outer.Context(), by, in)
		return r, err
	})
}

func (w *world) transfer(move bool) {
	from, to := pick(w, "from", append(files(w.tree), "f", "g")), pick(w, "to", append(slices.Clone(places), "f", "g"))
	folder := path.Dir(from) == "."
	if _, there := w.tree[from+"/"]; folder && !there || folder != (path.Dir(to) == ".") {
		w.t.Skip("no folder to take, or a file would become one")
	}
	in := content.Transfer{Target: w.target(from), Destination: to}
	if w.oneIn(8, "container") {
		in.Container, in.Destination = true, "h"
	}
	in.Base = w.structure(in.Target)
	w.attempt(map[bool]string{true: "move", false: "copy"}[move], func(d *desk, id string) (content.Result, error) {
		in.ID = id
		if move {
			return d.Move(w.outer.Context(), learner, in)
		}
		return d.Copy(w.outer.Context(), learner, in)
	})
}

func (w *world) remove() {
	name := pick(w, "path", append(files(w.tree), "f"))
	_, folder := w.tree[name+"/"]
	if name == "f" && !folder {
		w.t.Skip("there is no such folder")
	}
	in := content.Remove{Target: w.target(name), Base: bodyAt(w.tree, name)}
	i, err := w.d.Inspect(w.outer.Context(), in.Target)
	if err != nil {
		w.t.Fatalf("inspect %s: %v", name, err)
	}
	if in.Detach = i.Role == catalog.Material; in.Detach || folder {
		in.Base = w.structure(in.Target)
	}
	w.attempt("remove", func(d *desk, id string) (content.Result, error) {
		in.ID = id
		return d.Remove(w.outer.Context(), learner, in)
	})
}

func (w *world) restore() {
	in := content.Bring{Target: content.At(pick(w, "path", places))}
	if len(w.items) > 0 && w.oneIn(2, "by id") {
		in.Target = content.Target{ID: pick(w, "item", w.items)}
	}
	if h, err := w.d.History(w.outer.Context(), in.Target, 0, ""); err == nil {
		revisions := []string{""}
		for _, r := range h.Revisions {
			if r.Revision != nil {
				revisions = append(revisions, *r.Revision)
			}
		}
		in.Revision = pick(w, "revision", revisions)
	}
	w.attempt("restore", func(d *desk, id string) (content.Result, error) {
		in.ID = id
		return d.Restore(w.outer.Context(), learner, in)
	})
}

func (w *world) associate() {
	in := content.Associate{Location: catalog.Here(pick(w, "path", places)), Role: pick(w, "role", []catalog.Role{catalog.Document, catalog.Document, catalog.Material})}
	w.attempt("associate", func(d *desk, id string) (content.Result, error) {
		in.ID, in.Item = id, "item-"+id
		return d.Associate(w.outer.Context(), learner, in)
	})
}

func (w *world) compose() {
	in := content.Composition{Item: pick(w, "item", w.items)}
	in.Base = w.structure(content.Target{ID: in.Item})
	for range rapid.IntRange(0, 2).Draw(w.t, "members") {
		m := catalog.Member{Target: catalog.Target{ID: pick(w, "member", w.items)}}
		if w.oneIn(2, "by path") {
			at := catalog.Here(pick(w, "member", places))
			m.Target = catalog.Target{Location: &at}
		}
		in.Members = append(in.Members, m)
	}
	if kept := w.kept(); len(kept) > 0 && w.oneIn(2, "resource") {
		in.Resources = []catalog.Resource{{ID: pick(w, "resource", kept), MediaType: "text/plain"}}
	}
	w.attempt("compose", func(d *desk, id string) (content.Result, error) {
		in.ID = id
		return d.SetComposition(w.outer.Context(), learner, in)
	})
}

// patch changes several files at once.
func (w *world) patch() {
	by, in := w.agent(), content.Patch{}
	names := rapid.Permutation(places).Draw(w.t, "paths")[:rapid.IntRange(2, 3).Draw(w.t, "files")]
	var out strings.Builder
	out.WriteString("*** Begin Patch\n")
	for _, name := range names {
		s, there := w.tree[name]
		switch {
		case !there:
			fmt.Fprintf(&out, "*** Add File: %s\n+%s\n", name, strings.ReplaceAll(strings.TrimSuffix(w.drawText(), "\n"), "\n", "\n+"))
			if w.oneIn(4, "register") {
				in.Registrations = append(in.Registrations, content.Registration{Path: name, Role: catalog.Document})
			}
			continue
		case w.oneIn(6, "delete"):
			fmt.Fprintf(&out, "*** Delete File: %s\n", name)
			continue
		}
		fmt.Fprintf(&out, "*** Update File: %s\n", name)
		move := w.oneIn(6, "move")
		if move {
			fmt.Fprintf(&out, "*** Move to: %s\n", pick(w, "to", places))
		}
		if s == "" && !move {
			w.t.Skip("an empty file has no line")
		}
		if s != "" {
			e := w.drawEdit(s)
			fmt.Fprintf(&out, "@@\n-%s+%s\n", e.Old, strings.ReplaceAll(strings.TrimSuffix(e.New, "\n"), "\n", "\n+"))
		}
		if w.oneIn(2, "base") {
			in.Bases = append(in.Bases, content.PatchBase{Target: content.At(name), Base: w.base(name)})
		}
	}
	in.Text = out.String() + "*** End Patch\n"
	w.attempt("patch", func(d *desk, id string) (content.Result, error) {
		in.ID = id
		r, _, err := d.ApplyPatch(w.outer.Context(), by, in)
		return r, err
	})
}

// undo takes back any operation: an acknowledged one, or what was only observed.
func (w *world) undo() {
	by, before := w.agent(), w.tree
	if w.oneIn(8, "of an observation") {
		list, _, err := w.d.Operations(content.Filter{})
		if err != nil {
			w.t.Fatal(err)
		}
		list = slices.DeleteFunc(list, func(o content.Operation) bool { return o.Method != "observed" })
		of := pick(w, "observation", list)
		w.attempt("undo of an observation", func(d *desk, id string) (content.Result, error) { return d.Undo(w.outer.Context(), by, of.ID, id) })
		return
	}
	from := w.deals
	if !w.oneIn(4, "undone or not") {
		from = slices.DeleteFunc(slices.Clone(from), func(e *deal) bool {
			o, _, err := w.d.Operation(e.id)
			return err != nil || o.UndoneBy != ""
		})
	}
	of := pick(w, "operation", from)
	o, _, err := w.d.Operation(of.id)
	if err != nil {
		w.t.Fatal(err)
	}
	untouched, overlooked := true, false // all files are where and as the operation left them
	for _, c := range of.changes {
		untouched = untouched && bodyAt(before, c.Path) == value(c.After) && w.left[c.Path] <= of.born
	}
	first := true
	w.attempt("undo", func(d *desk, id string) (content.Result, error) {
		r, err := d.Undo(w.outer.Context(), by, of.id, id)
		if !first {
			return r, err
		}
		first = false
		switch after := w.look(); {
		case err != nil:
			w.n.undoRefused++
			overlooked = untouched && len(of.items) == 0 && o.UndoneBy == ""
		case !untouched:
			w.n.undone++
			w.n.merged++
		default:
			w.n.undone++
			for _, c := range of.changes {
				if got := bodyAt(after, c.Path); got != value(c.Before) {
					w.t.Errorf("the undo %s of %s left %s at %.8q, before it was %.8q", id, of.id, c.Path, got, value(c.Before))
				}
			}
		}
		if overlooked {
			w.t.Errorf("nothing was changed since %s, and its undo is refused: %v", of.id, err)
		}
		return r, err
	})
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (w *world) undoRun() {
	by := w.agent()
	w.attempt("undo of a run", func(d *desk, id string) (content.Result, error) {
		r, err := d.UndoRun(w.outer.Context(), learner, by.Run, id)
		return r.Result, err
	})
}
