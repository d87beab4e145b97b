package recordlog

import (
	"encoding/binary"

	"github.com/repa-app/repa/cas/internal/frame"
)

const (
	magic         = "repalog\x00"
	formatVersion = 1
	headerSize    = 16
	// MaxPayload bounds one record. The largest record is an admission with attached text; the protocol takes frames of 8 MiB,
	// whose JSON may grow when it is written again.
	MaxPayload = 32 << 20
)

// Record is one entry of the log. Types and versions are the caller's.
type Record struct {
	Type    uint8
	Version uint8
	Payload []byte
	At      Position // where a replayed record stands; Append takes no notice of it
}

// Position is a place in the log. The zero value is its beginning.
type Position struct {
	Segment uint64
	Offset  int64
}

// Before reports whether p comes before q.
func (p Position) Before(q Position) bool {
	return p.Segment < q.Segment || p.Segment == q.Segment && p.Offset < q.Offset
}

func segmentHeader(generation uint64) []byte {
	h := make([]byte, headerSize)
	copy(h, magic)
	binary.LittleEndian.PutUint32(h[8:], formatVersion)
	binary.LittleEndian.PutUint32(h[12:], headerSum(h[:12], generation))
	return h
}

func headerSum(prefix []byte, generation uint64) uint32 {
	return frame.Sum(prefix, binary.LittleEndian.AppendUint64(nil, generation))
}

// syncedBehind reports whether a later write begins in data: then everything before it had been synced.
func syncedBehind(data []byte, generation uint64) bool {
	return frame.Next(data, generation, MaxPayload, frame.BeginsWrite) >= 0
}
