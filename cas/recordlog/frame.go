package recordlog

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	magic         = "repalog\x00"
	formatVersion = 1
	headerSize    = 16
	frameSize     = 20
	// MaxPayload bounds one record. The largest record is an admission with attached text; the protocol takes frames of 8 MiB,
	// whose JSON may grow when it is written again.
	MaxPayload = 32 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Record is one entry of the log. Types and versions are the caller's.
type Record struct {
	Type    uint8
	Version uint8
	Payload []byte
}

func segmentHeader(generation uint64) []byte {
	h := make([]byte, headerSize)
	copy(h, magic)
	binary.LittleEndian.PutUint32(h[8:], formatVersion)
	binary.LittleEndian.PutUint32(h[12:], headerSum(h[:12], generation))
	return h
}

func headerSum(prefix []byte, generation uint64) uint32 {
	var g [8]byte
	binary.LittleEndian.PutUint64(g[:], generation)
	return crc32.Update(crc32.Checksum(prefix, castagnoli), castagnoli, g[:])
}

// Flags of a frame.
const (
	flagMore  = 1 // the next frame belongs to the same Append call
	flagFirst = 2 // the first frame of a write: everything before it was synced when it was written
)

func appendFrame(buf []byte, generation uint64, r Record, flags byte) []byte {
	var h [frameSize]byte
	binary.LittleEndian.PutUint32(h[0:], uint32(len(r.Payload)))
	h[4], h[5], h[6] = r.Type, r.Version, flags
	binary.LittleEndian.PutUint64(h[8:], generation)
	binary.LittleEndian.PutUint32(h[16:], frameSum(h[:16], r.Payload))
	return append(append(buf, h[:]...), r.Payload...)
}

func frameSum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, payload)
}

type frame struct {
	record Record // the payload aliases the data it was parsed from
	flags  byte
	size   int
}

// parseFrame reads the frame at the start of data. It returns false for anything that is not a whole, intact frame of the
// generation.
func parseFrame(data []byte, generation uint64) (frame, bool) {
	if len(data) < frameSize {
		return frame{}, false
	}
	n := binary.LittleEndian.Uint32(data)
	if n > MaxPayload || int(n) > len(data)-frameSize || data[6] > flagMore|flagFirst || data[7] != 0 ||
		binary.LittleEndian.Uint64(data[8:]) != generation {
		return frame{}, false
	}
	size := frameSize + int(n)
	payload := data[frameSize:size]
	if binary.LittleEndian.Uint32(data[16:]) != frameSum(data[:16], payload) {
		return frame{}, false
	}
	return frame{Record{Type: data[4], Version: data[5], Payload: payload}, data[6], size}, true
}

// syncedBehind reports whether a later write begins in data: then everything before it had been synced.
func syncedBehind(data []byte, generation uint64) bool {
	for i := 0; i+frameSize <= len(data); i++ {
		if data[i+6]&flagFirst == 0 || data[i+7] != 0 || data[i+8] != byte(generation) {
			continue
		}
		if _, ok := parseFrame(data[i:], generation); ok {
			return true
		}
	}
	return false
}
