package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// openStore opens the store of a space beside whoever has it open, or as its owner.
func (t *terminal) openStore(ctx context.Context, dir string, own bool) (*cas.Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	path, err := space.Resolve(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &coded{protocol.CodeNotFound, t.text(messages.NoSuchSpace, abs)}
	}
	if err != nil {
		return nil, err
	}
	s, err := cas.Open(ctx, filepath.Join(path, space.MetaFolder, space.StoreFolder), cas.Options{ReadOnly: !own})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &coded{protocol.CodeNotFound, t.text(messages.NoStore, path)}
	}
	return s, err
}

type casStat struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// Run prints what is in the store.
func (c *casStat) Run(ctx context.Context, t *terminal) error {
	s, err := t.openStore(ctx, c.Space, false)
	if err != nil {
		return err
	}
	defer s.Close()
	st := s.Stats()
	if c.Output == outputJSON {
		printJSON(t.out, map[string]any{"objects": st.Objects, "bytes": st.Bytes, "stored": st.Stored, "dead": st.Dead,
			"segments": st.Segments, "holds": st.Holds, "lastCollection": st.Last})
		return nil
	}
	fmt.Fprintln(t.out, t.text(messages.StoreObjects, st.Objects, size(st.Bytes)))
	fmt.Fprintln(t.out, t.text(messages.StoreStored, size(st.Stored), st.Segments, size(st.Dead)))
	for _, kind := range slices.Sorted(maps.Keys(st.Holds)) {
		fmt.Fprintln(t.out, t.text(messages.StoreHolds, st.Holds[kind], kind, st.Owners[kind]))
	}
	if st.Last != nil {
		fmt.Fprintln(t.out, t.text(messages.StoreLast, st.Last.At.Local().Format(time.DateTime), st.Last.Objects, size(st.Last.Bytes)))
	}
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
	s, err := t.openStore(ctx, c.Space, false)
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := s.Verify(ctx, t.storeProgress())
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

func verification(v *cas.Verification) map[string]any {
	damaged := []damagedObject{}
	for _, d := range v.Damaged {
		damaged = append(damaged, damagedObject{d.ID, append([]cas.Owner{}, d.Owners...), d.Segment, d.Offset})
	}
	out := map[string]any{"objects": v.Objects, "bytes": v.Bytes, "damaged": damaged}
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
		owners := make([]string, len(d.Owners))
		for i, o := range d.Owners {
			owners[i] = o.String()
		}
		fmt.Fprintln(t.out, t.text(messages.StoreDamaged, d.ID, d.Segment, d.Offset, d.Reason, strings.Join(owners, " ")))
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

// storeProgress shows on a terminal how far a verification is; nil elsewhere.
func (t *terminal) storeProgress() func(cas.Progress) {
	out, ok := t.err.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	const often = 200 * time.Millisecond // people see no more
	last := time.Now()
	return func(p cas.Progress) {
		if time.Since(last) >= often {
			last = time.Now()
			fmt.Fprintf(t.err, "\r%s / %s ", size(p.Done), size(p.Total))
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
	s, err := t.openStore(ctx, c.Space, false)
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
		owners := make([]string, len(r.Owners))
		for i, o := range r.Owners {
			owners[i] = o.String()
		}
		fmt.Fprintf(t.out, "%s %10d %10d %s\n", r.ID, r.Size, r.Stored, strings.Join(owners, " "))
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
	s, err := t.openStore(ctx, c.Space, false)
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

// Run repairs the store, which nobody may have open.
func (c *casRepair) Run(ctx context.Context, t *terminal) error {
	s, err := t.openStore(ctx, c.Space, true)
	if err != nil {
		return err
	}
	out, err := s.Repair(ctx, t.storeProgress())
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if c.Output == outputJSON {
		missing := []damagedObject{}
		for _, d := range out.Missing {
			missing = append(missing, damagedObject{d.ID, append([]cas.Owner{}, d.Owners...), d.Segment, d.Offset})
		}
		printJSON(t.out, map[string]any{"objects": out.Objects, "dropped": append([]cas.ID{}, out.Dropped...), "missing": missing,
			"aside": append([]string{}, out.Aside...), "recovered": out.Recovered})
		return nil
	}
	fmt.Fprintln(t.out, t.text(messages.StoreRepaired, out.Objects, len(out.Dropped)))
	for _, d := range out.Missing {
		fmt.Fprintln(t.out, t.text(messages.StoreMissing, d.ID))
	}
	for _, name := range out.Aside {
		fmt.Fprintln(t.out, t.text(messages.StoreAside, name))
	}
	if out.Recovered != nil {
		fmt.Fprintln(t.out, t.text(messages.StoreRecovered, out.Recovered))
	}
	return nil
}
