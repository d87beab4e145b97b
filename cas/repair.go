package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/repa-app/repa/cas/internal/table"
	"github.com/repa-app/repa/cas/vfs"
)

// damagedDir is where Repair puts what it could not use.
const damagedDir = "damaged"

// Repaired says what Repair did.
type Repaired struct {
	Objects   int64          `json:"objects"`   // intact, in the index now
	Dropped   []ID           `json:"dropped"`   // proven damaged and held by nobody
	Missing   []*DamageError `json:"missing"`   // damaged, but held: putting the same bytes again heals them
	Aside     []string       `json:"aside"`     // files moved to the folder damaged
	Recovered *Owner         `json:"recovered"` // holds what may have been held by somebody whose hold the damage took; nil: nothing was in doubt
}

// Repair makes the store whole again as far as its bytes allow: it verifies everything, copies what is intact out of damaged packs, moves
// those and damaged checkpoints aside, and writes the index anew. It drops only objects that are proven damaged and that nobody holds. When damage
// may have hidden holds, everything that nobody is known to hold is held by an owner of kind recovered from then on, so that nothing is
// collected until somebody decides about it.
//
// Errors: ErrReadOnly, ErrClosed, errors of the disk. It may be repeated.
func (s *Store) Repair(ctx context.Context, progress func(Progress)) (out Repaired, err error) {
	s.collecting.Lock()
	defer s.collecting.Unlock()
	if s.writer == nil {
		return out, ErrReadOnly
	}
	if s.frozen != nil {
		return out, s.frozen
	}
	v, err := s.Verify(ctx, progress)
	if err == nil {
		err = s.repair(ctx, &v, &out)
	}
	if err != nil {
		return out, fmt.Errorf("repair: %w", err)
	}
	return out, nil
}

func (s *Store) repair(ctx context.Context, v *Verification, out *Repaired) error {
	if err := s.dropDamaged(ctx, v, out); err != nil {
		return err
	}
	damaged, err := s.damagedPacks(ctx)
	if err != nil {
		return err
	}
	for _, g := range damaged {
		if _, _, err := s.copyLive(ctx, g); err != nil {
			return err
		}
	}
	if err := s.recover(ctx, out); err != nil {
		return err
	}
	if err := s.checkpoint(ctx); err != nil {
		return err
	}
	return s.moveAside(ctx, damaged, out)
}

// dropDamaged forgets damaged objects that nobody holds.
func (s *Store) dropDamaged(ctx context.Context, v *Verification, out *Repaired) error {
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	return s.step(ctx, func() {
		for _, d := range v.Damaged {
			r, ok := s.table.Lookup(table.ID(d.ID))
			switch {
			case ok && s.bad[r] != "" && s.fate(r) != alive || !ok:
				if ok {
					s.drop(r)
				}
				delete(s.lost, d.ID)
				out.Dropped = append(out.Dropped, d.ID)
			case ok:
				out.Missing = append(out.Missing, d)
			}
		}
		out.Objects = int64(s.table.Len() - len(s.bad))
	})
}

// damagedPacks lists the packs with damage in them. The newest is ended when it is one.
func (s *Store) damagedPacks(ctx context.Context) ([]uint32, error) {
	var out []uint32
	err := s.step(ctx, func() {
		for _, g := range s.gaps {
			out = append(out, g.segment)
		}
		for r := range s.bad {
			out = append(out, s.table.Place(r).Segment)
		}
		slices.Sort(out)
		out = slices.Compact(out)
		if slices.Contains(out, s.writer.current.Load()) {
			_ = s.writer.seal() // it is synced; a file that does not close well is read like any other
		}
	})
	return out, err
}

// recover holds what nobody is known to hold when holds are in doubt.
func (s *Store) recover(ctx context.Context, out *Repaired) error {
	s.mu.RLock()
	doubt := s.inDoubt
	var ids []ID
	if doubt != nil {
		for r := range s.table.All() {
			if !s.table.Held(r) {
				ids = append(ids, ID(s.table.ID(r)))
			}
		}
	}
	generation := s.position.segment
	s.mu.RUnlock()
	if doubt == nil {
		return nil
	}
	owner := Owner{OwnerRecovered, fmt.Sprintf("%08x", generation)}
	for part := range slices.Chunk(ids, maxHolds) {
		if err := s.Hold(ctx, owner, part...); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		out.Recovered = &owner
	}
	return s.step(ctx, func() { s.inDoubt = nil })
}

// moveAside puts damaged files into a folder of their own. A pack in which somebody's damaged object lies stays in the index, so that the
// object is known to be missing.
func (s *Store) moveAside(ctx context.Context, damaged []uint32, out *Repaired) error {
	if len(damaged)+len(s.badCheckpoints) == 0 {
		return nil
	}
	if err := vfs.MkdirAll(s.fsys, damagedDir, 0o700); err != nil {
		return err
	}
	for _, g := range damaged {
		var empty bool
		if err := s.step(ctx, func() { empty = s.segments[g] != nil && s.segments[g].objects == 0 }); err != nil {
			return err
		}
		if empty {
			if err := s.submit(ctx, &write{records: []record{{typ: recordRemoved, removed: []uint32{g}}}}); err != nil {
				return err
			}
		}
		s.files.forget(g)
		if err := s.setAside(segmentPath(g), segmentName(g), out); err != nil {
			return err
		}
	}
	for _, name := range s.badCheckpoints {
		if err := s.setAside(name, name, out); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.gaps = slices.DeleteFunc(s.gaps, func(g gap) bool { return slices.Contains(damaged, g.segment) })
	s.badCheckpoints = nil
	s.mu.Unlock()
	return errors.Join(s.fsys.SyncDir(damagedDir), s.checkpoint(ctx))
}

func (s *Store) setAside(from, name string, out *Repaired) error {
	to := damagedDir + "/" + name
	for i := 2; ; i++ {
		if _, err := s.fsys.Stat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		to = fmt.Sprintf("%s/%s.%d", damagedDir, name, i)
	}
	err := s.fsys.Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the file was the damage
	}
	if err == nil {
		out.Aside = append(out.Aside, to)
	}
	return err
}
