package cas

import "time"

// Stats describes a store.
type Stats struct {
	Objects  int64
	Bytes    int64 // of all objects, uncompressed; of what large ones share, once for each and once for the pieces
	Stored   int64 // bytes of the records of objects
	Dead     int64 // bytes in packs that collection could free; what grace still protects is not among them
	Segments int
	Holds    map[OwnerKind]int64
	Owners   map[OwnerKind]int64
	InDoubt  string     // why nothing may be collected; "" when it may
	Last     *Collected // the last collection; nil: none yet
}

// Stats counts. It takes a time in proportion to the number of owners.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Stats{Objects: int64(s.table.Len()), Bytes: s.bytes, Segments: len(s.segments), Holds: map[OwnerKind]int64{}, Owners: map[OwnerKind]int64{}}
	for _, seg := range s.segments {
		st.Stored += seg.live
		st.Dead += seg.dead()
	}
	for name, refs := range s.table.AllOwners() {
		if _, large := largeOf(name); !large {
			kind := ownerOf(name).Kind
			st.Owners[kind]++
			st.Holds[kind] += int64(len(refs))
		}
	}
	if s.inDoubt != nil {
		st.InDoubt = s.inDoubt.Error()
	}
	if !s.last.At.IsZero() {
		last := s.last
		last.At = last.At.Round(time.Millisecond)
		st.Last = &last
	}
	return st
}
