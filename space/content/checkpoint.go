package content

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
)

// The section of a checkpoint that belongs to this package. Numbers are unsigned varints, texts have their length before them:
//
//	version (1) · number of items, each its JSON · number of operations, each as appendOperation writes it · number of pruned ids, each with its hash
const checkpointVersion = 1

var errCheckpoint = errors.New("the checkpoint's section of contents is damaged")

// Checkpoint is what the journal says of contents so far. It waits for the operation under way; the journal must not take records meanwhile.
func (e *Engine) Checkpoint() ([]byte, error) {
	e.change.Lock()
	defer e.change.Unlock()
	e.mu.RLock()
	defer e.mu.RUnlock()
	w := &writer{}
	w.number(checkpointVersion)
	w.number(uint64(e.catalog.Len()))
	for i := range e.catalog.All() {
		data, err := json.Marshal(i)
		if err != nil {
			return nil, err
		}
		w.text(string(data))
	}
	w.number(uint64(len(e.order)))
	for _, o := range e.order {
		w.operation(o)
	}
	w.number(uint64(len(e.pruned)))
	for _, id := range slices.Sorted(maps.Keys(e.pruned)) {
		w.text(id)
		w.text(e.pruned[id])
	}
	return w.out, nil
}

// RestoreCheckpoint takes what Checkpoint gave, before any Replay. Errors: one that says it is damaged; the engine is then to be made anew.
func (e *Engine) RestoreCheckpoint(data []byte) error {
	r := &reader{data, true}
	if r.number() != checkpointVersion {
		return errCheckpoint
	}
	var items []catalog.Change
	for range r.count() {
		var i catalog.Item
		if err := json.Unmarshal([]byte(r.text()), &i); err != nil {
			return errCheckpoint
		}
		items = append(items, catalog.Change{After: &i})
	}
	n := r.count()
	list := make([]*operation, 0, n)
	for range n {
		o := r.operation()
		if !r.ok {
			return errCheckpoint
		}
		list = append(list, o)
	}
	pruned := map[string]string{}
	for range r.count() {
		id := r.text()
		pruned[id] = r.text()
	}
	if !r.ok || len(r.rest) > 0 {
		return errCheckpoint
	}
	e.catalog.Apply(items)
	for _, o := range list {
		e.enter(o)
		if o.status == NeedsRecovery {
			e.unsettled[o.id] = o
		}
	}
	e.pruned = pruned
	return nil
}

// statuses and kinds by their number in a checkpoint; new ones go to the end.
var (
	statuses = []Status{Prepared, Committed, RolledBack, NeedsRecovery, Reconciled}
	kinds    = []string{kindAbsent, kindDirectory, kindFile}
)

// writer appends values.
type writer struct{ out []byte }

func (w *writer) number(n uint64) { w.out = binary.AppendUvarint(w.out, n) }

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.out = append(w.out, s...)
}

func (w *writer) texts(list []string) {
	w.number(uint64(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

// operation appends: id, hash (32 bytes as text), method, status, time, actor, session, run, request, segment, offset, undoes, undoneBy, code, error,
// conflicts, items, number of files, each path, path it came from and two images.
func (w *writer) operation(o *operation) {
	hash, err := hex.DecodeString(o.hash)
	if err != nil {
		hash = nil // observations have none
	}
	w.text(o.id)
	w.text(string(hash))
	w.text(o.method)
	w.number(uint64(slices.Index(statuses, o.status)))
	w.number(uint64(o.time))
	for _, s := range []string{string(o.by.Actor), o.by.Session, o.by.Run, o.by.Request} {
		w.text(s)
	}
	w.number(o.at.Segment)
	w.number(uint64(o.at.Offset))
	w.texts(o.undoes)
	w.text(o.undoneBy)
	w.text(o.code)
	w.text(o.err)
	w.texts(o.conflicts)
	w.texts(o.items)
	w.number(uint64(len(o.files)))
	for _, f := range o.files {
		w.text(f.Path)
		w.text(f.Was)
		w.image(f.Before)
		w.image(f.After)
	}
}

// image appends: kind and, 4 added, whether a body follows; size; mode; 32 bytes of the body.
func (w *writer) image(i Image) {
	kind := uint64(slices.Index(kinds, i.Kind))
	if i.Body != nil {
		kind += 4
	}
	w.number(kind)
	w.number(uint64(i.Size))
	w.number(uint64(i.Mode))
	if i.Body != nil {
		w.out = append(w.out, i.Body[:]...)
	}
}

// reader takes values off; ok ends at the first that is not there.
type reader struct {
	rest []byte
	ok   bool
}

func (r *reader) fail() {
	r.rest, r.ok = nil, false
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// count is a number of things that have a byte each at least.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *reader) texts() (out []string) {
	for range r.count() {
		out = append(out, r.text())
	}
	return out
}

func (r *reader) operation() *operation {
	o := &operation{id: r.text(), hash: hex.EncodeToString([]byte(r.text())), method: r.text()}
	if status := r.number(); status < uint64(len(statuses)) {
		o.status = statuses[status]
	} else {
		r.fail()
	}
	o.time = int64(r.number())
	o.by = By{Actor(r.text()), r.text(), r.text(), r.text()}
	o.at.Segment, o.at.Offset = r.number(), int64(r.number())
	o.undoes, o.undoneBy, o.code, o.err, o.conflicts, o.items = r.texts(), r.text(), r.text(), r.text(), r.texts(), r.texts()
	for range r.count() {
		f := FileChange{Path: r.text(), Was: r.text()}
		f.Before = r.image()
		f.After = r.image()
		o.files = append(o.files, f)
	}
	return o
}

func (r *reader) image() (i Image) {
	kind := r.number()
	if kind&3 >= uint64(len(kinds)) || kind > 7 {
		r.fail()
		return i
	}
	i.Kind, i.Size, i.Mode = kinds[kind&3], int64(r.number()), fs.FileMode(r.number())
	if kind&4 == 0 {
		return i
	}
	var body cas.ID
	if len(r.rest) < len(body) {
		r.fail()
		return i
	}
	copy(body[:], r.rest)
	r.rest = r.rest[len(body):]
	i.Body = &body
	return i
}
