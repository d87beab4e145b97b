package cas

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"syscall"
	"time"

	"github.com/repa-app/repa/cas/internal/table"
)

// maxHolds bounds the ids of one record.
const maxHolds = 1 << 20

// Hold keeps objects in the store for an owner, in addition to what it holds already. It returns when that is durable: pin before
// publishing.
//
// Errors: ErrNotFound when an object is not there, and then nothing is held; ErrReadOnly, ErrClosed, errors of the disk.
func (s *Store) Hold(ctx context.Context, owner Owner, ids ...ID) error {
	if len(ids) == 0 {
		return ctx.Err()
	}
	return s.change(ctx, record{typ: recordHold, owner: owner.String(), ids: ids}, owner)
}

// Replace makes ids all that an owner holds. With none the owner is gone. Errors: as Hold.
func (s *Store) Replace(ctx context.Context, owner Owner, ids ...ID) error {
	return s.change(ctx, record{typ: recordReplace, owner: owner.String(), ids: ids}, owner)
}

// Release ends holds of an owner: of the ids, or all when there are none. What it does not hold is passed over.
//
// It works on a full disk by means of the reserve: what frees room must not wait for room.
//
// Errors: ErrReadOnly, ErrClosed, errors of the disk; after one the holds may stand or not.
func (s *Store) Release(ctx context.Context, owner Owner, ids ...ID) error {
	r := record{typ: recordRelease, owner: owner.String(), ids: ids}
	if len(ids) == 0 {
		r.typ = recordReplace
	}
	err := s.change(ctx, r, owner)
	if errors.Is(err, syscall.ENOSPC) && s.lendReserve() {
		err = s.change(ctx, r, owner)
	}
	return err
}

func (s *Store) change(ctx context.Context, r record, owner Owner) error {
	if err := owner.check(); err != nil {
		return err
	}
	if len(r.ids) > maxHolds {
		return fmt.Errorf("%d objects for %s are more than one call takes (%d)", len(r.ids), owner, maxHolds)
	}
	r.ids = slices.Clone(r.ids)
	if err := s.submit(ctx, &write{records: []record{r}}); err != nil {
		return fmt.Errorf("change what %s holds: %w", owner, err)
	}
	return nil
}

// Owners returns who holds an object; of a piece of large ones, who holds those. Sorted.
func (s *Store) Owners(id ID) []Owner {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.table.Lookup(table.ID(id))
	if !ok {
		return nil
	}
	return s.ownersOf(r)
}

// ownersOf is Owners with mu held.
func (s *Store) ownersOf(r table.Ref) []Owner {
	var out []Owner
	for _, name := range s.table.Owners(r) {
		large, ok := largeOf(name)
		if !ok {
			out = append(out, ownerOf(name))
		} else if l, ok := s.table.Lookup(table.ID(large)); ok {
			out = append(out, s.ownersOf(l)...)
		}
	}
	slices.SortFunc(out, compareOwners)
	return slices.Compact(out)
}

// Held returns what an owner holds, in the order in which it was held.
func (s *Store) Held(owner Owner) []ID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	refs := s.table.Holds(owner.String())
	out := make([]ID, len(refs))
	for i, r := range refs {
		out[i] = ID(s.table.ID(r))
	}
	return out
}

// AllOwners goes over the owners of a kind, or of all when kind is empty, sorted.
func (s *Store) AllOwners(kind OwnerKind) iter.Seq[Owner] {
	return func(yield func(Owner) bool) {
		var owners []Owner
		s.mu.RLock()
		for name := range s.table.AllOwners() {
			if _, large := largeOf(name); !large {
				if o := ownerOf(name); kind == "" || o.Kind == kind {
					owners = append(owners, o)
				}
			}
		}
		s.mu.RUnlock()
		slices.SortFunc(owners, compareOwners)
		for _, o := range owners {
			if !yield(o) {
				return
			}
		}
	}
}

// Lease holds objects for an owner of kind lease until remains has passed, by a clock that never goes back, or it is renewed or ended. What
// it held before is replaced. Time during which the store is not open does not count.
//
// Errors: as Hold; ErrLeaseEnded when this lease has ended before: its name is remembered, so that a late repetition does not bind it to
// something else.
func (s *Store) Lease(ctx context.Context, owner Owner, remains time.Duration, ids ...ID) error {
	if err := checkLease(owner, remains); err != nil {
		return err
	}
	defer s.wakeExpiry()
	return s.change(ctx, record{typ: recordLease, owner: owner.String(), ids: ids, remains: remains}, owner)
}

// Renew lets a lease last until remains has passed from now. Errors: ErrLeaseEnded, ErrNotFound when there never was one, as Hold.
func (s *Store) Renew(ctx context.Context, owner Owner, remains time.Duration) error {
	if err := checkLease(owner, remains); err != nil {
		return err
	}
	defer s.wakeExpiry()
	return s.change(ctx, record{typ: recordRenew, owner: owner.String(), remains: remains}, owner)
}

// EndLease ends a lease before its time. Ending one that has ended is harmless. Errors: as Release.
func (s *Store) EndLease(ctx context.Context, owner Owner) error {
	return s.change(ctx, record{typ: recordEnd, owner: owner.String()}, owner)
}

// Remains returns how long a lease lasts; false when there is none.
func (s *Store) Remains(owner Owner) (time.Duration, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	deadline, ok := s.leases[owner.String()]
	return max(0, deadline-s.elapsed()), ok
}

func checkLease(owner Owner, remains time.Duration) error {
	if owner.Kind != OwnerLease {
		return fmt.Errorf("owner %s: want one of kind %s", owner, OwnerLease)
	}
	if remains <= 0 {
		return fmt.Errorf("lease %s: it cannot last %s", owner.ID, remains)
	}
	return nil
}

// leaseState says why a lease record is refused.
func (w *writer) leaseState(r *record) error {
	w.s.mu.RLock()
	defer w.s.mu.RUnlock()
	if w.s.ended.has(r.owner) {
		return fmt.Errorf("%s: %w", r.owner, ErrLeaseEnded)
	}
	if _, ok := w.s.leases[r.owner]; !ok && r.typ == recordRenew {
		return fmt.Errorf("%s: %w", r.owner, ErrNotFound)
	}
	return nil
}

// expire ends leases when their time has come. It sleeps until the next one.
func (s *Store) expire() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, ok := s.endExpired(s.ending)
		if !ok {
			next = time.Hour
		}
		timer.Reset(next)
		select {
		case <-timer.C:
		case <-s.leased:
		case <-s.ending.Done():
			return
		}
	}
}

func (s *Store) wakeExpiry() {
	select {
	case s.leased <- struct{}{}:
	default: // it will look anyway
	}
}

// retryExpiry is how long an end that could not be written waits: a full disk does not empty in less.
const retryExpiry = 10 * time.Second

// endExpired ends the leases whose time has come, and returns how long the next one lasts.
func (s *Store) endExpired(ctx context.Context) (next time.Duration, ok bool) {
	var over []string
	s.mu.RLock()
	now := s.elapsed()
	for name, deadline := range s.leases {
		switch {
		case deadline <= now:
			over = append(over, name)
		case !ok || deadline-now < next:
			next, ok = deadline-now, true
		}
	}
	s.mu.RUnlock()
	slices.Sort(over)
	for _, name := range over {
		if err := s.submit(ctx, &write{records: []record{{typ: recordEnd, owner: name}}}); err != nil {
			return retryExpiry, true
		}
	}
	return next, ok
}

// endedLeases bounds the memory of leases that have ended; a repetition comes within minutes, not after thousands of others.
const endedLeases = 4096

// tombstones are the newest names of leases that have ended.
type tombstones struct {
	order []string
	set   map[string]struct{}
}

func newTombstones() *tombstones { return &tombstones{set: map[string]struct{}{}} }

func (t *tombstones) add(name string) {
	if _, ok := t.set[name]; ok {
		return
	}
	t.set[name] = struct{}{}
	if t.order = append(t.order, name); len(t.order) > endedLeases {
		delete(t.set, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *tombstones) has(name string) bool {
	_, ok := t.set[name]
	return ok
}

func (t *tombstones) names() []string { return slices.Clone(t.order) }
