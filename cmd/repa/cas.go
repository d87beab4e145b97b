package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/space"
)

type casCommands struct {
	Stat   casStat   `cmd:"" help:"${cas_stat}"`
	Verify casVerify `cmd:"" help:"${cas_verify}"`
	Ls     casList   `cmd:"" help:"${cas_ls}"`
	Cat    casCat    `cmd:"" help:"${cas_cat}"`
	Gc     casGC     `cmd:"" help:"${cas_gc}"`
	Repair casRepair `cmd:"" help:"${cas_repair}"`
}

// storeFolder finds the store of a space.
func (t *terminal) storeFolder(dir string) (path, store string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	if _, err := os.Stat(abs); errors.Is(err, fs.ErrNotExist) {
		return "", "", &coded{protocol.CodeNotFound, t.text(messages.NoSuchSpace, abs)}
	}
	if path, err = space.Resolve(abs); err != nil {
		return "", "", err
	}
	store = filepath.Join(path, space.MetaFolder, space.StoreFolder)
	if _, err := os.Lstat(store); errors.Is(err, fs.ErrNotExist) {
		return "", "", &coded{protocol.CodeNotFound, t.text(messages.NoStore, path)}
	}
	return path, store, nil
}

// openStore opens the store of a space for reading, beside whoever has it open. It starts no backend.
func (t *terminal) openStore(ctx context.Context, dir string) (*cas.Store, error) {
	_, folder, err := t.storeFolder(dir)
	if err != nil {
		return nil, err
	}
	return cas.Open(ctx, folder, cas.Options{ReadOnly: true})
}

type casStat struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// storeStats is the object of --output json. Sizes are bytes.
type storeStats struct {
	Objects        int64                   `json:"objects"`
	Bytes          int64                   `json:"bytes"`
	Stored         int64                   `json:"stored"`
	Dead           int64                   `json:"dead"`
	Segments       int                     `json:"segments"`
	Holds          map[cas.OwnerKind]int64 `json:"holds"`
	LastCollection *lastCollection         `json:"lastCollection"`
}

type lastCollection struct {
	At       time.Time `json:"at"`
	Objects  int64     `json:"objects"`
	Bytes    int64     `json:"bytes"`
	Segments int       `json:"segments"`
}

// Run prints what is in the store.
func (c *casStat) Run(ctx context.Context, t *terminal) error {
	s, err := t.openStore(ctx, c.Space)
	if err != nil {
		return err
	}
	defer s.Close()
	st := s.Stats()
	if c.Output == outputJSON {
		out := storeStats{Objects: st.Objects, Bytes: st.Bytes, Stored: st.Stored, Dead: st.Dead, Segments: st.Segments, Holds: st.Holds}
		if l := st.Last; l != nil {
			out.LastCollection = &lastCollection{l.At.UTC(), l.Objects, l.Bytes, l.Segments}
		}
		printJSON(t.out, out)
		return nil
	}
	row := func(name messages.Message, value string) {
		fmt.Fprintf(t.out, "%s  %s\n", pad(t.text(name), 16), value)
	}
	row(messages.StatObjects, fmt.Sprintf("%d (%s)", st.Objects, size(st.Bytes)))
	row(messages.StatStored, size(st.Stored))
	row(messages.StatDead, size(st.Dead))
	row(messages.StatPacks, strconv.Itoa(st.Segments))
	for _, kind := range slices.Sorted(maps.Keys(st.Holds)) {
		row(messages.StatHolds, t.text(messages.StatHoldsOf, kind, st.Holds[kind], st.Owners[kind]))
	}
	last := t.text(messages.StatNever)
	if l := st.Last; l != nil {
		last = t.text(messages.StatLast, l.At.Local().Format(time.DateTime), l.Objects, size(l.Bytes))
	}
	row(messages.StatCollected, last)
	if st.InDoubt != "" {
		t.say(messages.StoreInDoubt, st.InDoubt)
	}
	return nil
}

// size is a number of bytes for people, in powers of 1,024.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, exponent := float64(n)/unit, 0
	for value >= unit && exponent < 5 {
		value, exponent = value/unit, exponent+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[exponent])
}

type casVerify struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// damagedObject is one of the list that verify prints.
type damagedObject struct {
	ID      cas.ID      `json:"id"`
	Owners  []cas.Owner `json:"owners"`
	Segment string      `json:"segment"`
	Offset  int64       `json:"offset"`
}

// Run reads everything in the store and checks it.
func (c *casVerify) Run(ctx context.Context, t *terminal) error {
	s, err := t.openStore(ctx, c.Space)
	if err != nil {
		return err
	}
	defer s.Close()
	progress, done := t.storeProgress()
	v, err := s.Verify(ctx, progress)
	done()
	if err != nil {
		return err
	}
	if c.Output == outputJSON {
		printJSON(t.out, verification(&v))
	} else {
		t.printVerification(&v)
	}
	if !v.Sound() {
		return &exit{code: exitFailed}
	}
	return nil
}

func damagedObjects(all []*cas.DamageError) []damagedObject {
	out := []damagedObject{}
	for _, d := range all {
		out = append(out, damagedObject{d.ID, append([]cas.Owner{}, d.Owners...), d.Segment, d.Offset})
	}
	return out
}

// ownerNames is owners for people.
func (t *terminal) ownerNames(owners []cas.Owner) string {
	if len(owners) == 0 {
		return t.text(messages.StoreNobody)
	}
	names := make([]string, len(owners))
	for i, o := range owners {
		names[i] = o.String()
	}
	return strings.Join(names, " ")
}

func verification(v *cas.Verification) map[string]any {
	out := map[string]any{"objects": v.Objects, "bytes": v.Bytes, "damaged": damagedObjects(v.Damaged)}
	if len(v.Gaps) > 0 {
		gaps := []map[string]any{}
		for _, g := range v.Gaps {
			gaps = append(gaps, map[string]any{"segment": g.Segment, "start": g.Start, "end": g.End})
		}
		out["gaps"] = gaps
	}
	if len(v.Files) > 0 {
		out["files"] = v.Files
	}
	return out
}

func (t *terminal) printVerification(v *cas.Verification) {
	for _, d := range v.Damaged {
		fmt.Fprintln(t.out, t.text(messages.StoreDamaged, d.ID, d.Segment, d.Offset, d.Reason, t.ownerNames(d.Owners)))
	}
	for _, g := range v.Gaps {
		fmt.Fprintln(t.out, t.text(messages.StoreGap, g.Segment, g.Start, g.End))
	}
	for _, f := range v.Files {
		fmt.Fprintln(t.out, t.text(messages.StoreFile, f))
	}
	if v.Sound() {
		fmt.Fprintln(t.out, t.text(messages.StoreSound, v.Objects, size(v.Bytes)))
	} else {
		t.say(messages.StoreUnsound)
	}
}

// storeProgress shows on a terminal how far a verification is, until done is called; elsewhere nothing.
func (t *terminal) storeProgress() (show func(cas.Progress), done func()) {
	out, ok := t.err.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return nil, func() {}
	}
	const often = 200 * time.Millisecond // people see no more
	last, shown := time.Now(), false
	show = func(p cas.Progress) {
		if time.Since(last) >= often {
			last, shown = time.Now(), true
			fmt.Fprintf(t.err, "\r\x1b[K%s / %s", size(p.Done), size(p.Total))
		}
	}
	return show, func() {
		if shown {
			fmt.Fprint(t.err, "\r\x1b[K")
		}
	}
}

type casList struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Held   bool   `help:"${cas_held}"`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// listedObject is one line of a listing. Sizes are bytes.
type listedObject struct {
	ID     cas.ID      `json:"id"`
	Size   int64       `json:"size"`
	Stored int64       `json:"stored"`
	Owners []cas.Owner `json:"owners"`
}

// Run lists the objects, sorted by id.
func (c *casList) Run(ctx context.Context, t *terminal) error {
	s, err := t.openStore(ctx, c.Space)
	if err != nil {
		return err
	}
	defer s.Close()
	rows := []listedObject{}
	for info := range s.All() {
		if owners := s.Owners(info.ID); !c.Held || len(owners) > 0 {
			rows = append(rows, listedObject{info.ID, info.Size, info.Stored, append([]cas.Owner{}, owners...)})
		}
	}
	slices.SortFunc(rows, func(a, b listedObject) int { return slices.Compare(a.ID[:], b.ID[:]) })
	if c.Output == outputJSON {
		printJSON(t.out, map[string]any{"objects": rows})
		return nil
	}
	for _, r := range rows {
		fmt.Fprintf(t.out, "%s %10d %10d %s\n", r.ID, r.Size, r.Stored, t.ownerNames(r.Owners))
	}
	return nil
}

type casCat struct {
	ID    string `arg:"" help:"${cas_id}"`
	Space string `help:"${flag_space}" placeholder:"DIR" default:"."`
}

// Run writes an object to the output.
func (c *casCat) Run(ctx context.Context, t *terminal) error {
	id, err := cas.ParseID(c.ID)
	if err != nil {
		return t.fail(exitUsage, messages.StoreBadID, err)
	}
	s, err := t.openStore(ctx, c.Space)
	if err != nil {
		return err
	}
	defer s.Close()
	o, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	defer o.Close()
	_, err = o.WriteTo(t.out)
	return err
}

type casGC struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// Run lets the owner of the store collect.
func (c *casGC) Run(ctx context.Context, t *terminal) error {
	cl, s, err := t.enterDir(ctx, c.Space)
	if err != nil {
		return err
	}
	defer leave(cl)
	out, err := client.Call(ctx, cl, protocol.ResourceCollect, protocol.SpaceParams{SpaceID: s.ID})
	if err != nil {
		return err
	}
	if c.Output == outputJSON {
		printJSON(t.out, out)
		return nil
	}
	fmt.Fprintln(t.out, t.text(messages.StoreCollected, out.Removed, size(int64(out.Bytes))))
	return nil
}

type casRepair struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// Run repairs the store. It holds the space's lock meanwhile, as a backend does that has it open.
func (c *casRepair) Run(ctx context.Context, t *terminal) error {
	path, _, err := t.storeFolder(c.Space)
	if err != nil {
		return err
	}
	owned, err := space.Open(ctx, path, space.Options{NewID: uuid.NewString, Owner: space.Owner{PID: os.Getpid()}})
	if codeOf(err) == protocol.CodeSpaceInUse {
		return &coded{protocol.CodeSpaceInUse, t.text(messages.RepairInUse, err)}
	}
	if err != nil {
		return err
	}
	progress, done := t.storeProgress()
	out, err := owned.Store().Repair(ctx, progress)
	done()
	if err := errors.Join(err, owned.Close()); err != nil {
		return err
	}
	if c.Output == outputJSON {
		printJSON(t.out, map[string]any{"objects": out.Objects, "dropped": append([]cas.ID{}, out.Dropped...), "missing": damagedObjects(out.Missing),
			"aside": append([]string{}, out.Aside...), "recovered": out.Recovered})
		return nil
	}
	fmt.Fprintln(t.out, t.text(messages.StoreRepaired, out.Objects, len(out.Dropped)))
	for _, d := range out.Missing {
		fmt.Fprintln(t.out, t.text(messages.StoreMissing, d.ID, t.ownerNames(d.Owners)))
	}
	for _, name := range out.Aside {
		fmt.Fprintln(t.out, t.text(messages.StoreAside, filepath.Join(path, space.MetaFolder, space.StoreFolder, filepath.FromSlash(name))))
	}
	if out.Recovered != nil {
		fmt.Fprintln(t.out, t.text(messages.StoreRecovered, out.Recovered))
	}
	return nil
}

func codeOf(err error) protocol.Code {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return protocol.Code(coded.Code())
	}
	return ""
}
