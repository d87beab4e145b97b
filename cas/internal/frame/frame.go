// Package frame is the record frame of every append-only file of the product: journal, packs, checkpoints.
//
// All numbers are little-endian:
//
//	0  4  length of the payload in bytes
//	4  1  record type
//	5  1  record version
//	6  1  flags: 1 the next frame belongs to the same call; 2 the first frame of a write (what is before it was synced)
//	7  1  0
//	8  8  generation of the file
//	16 4  CRC-32C (Castagnoli) of bytes 0 to 15 and the payload
//	20 n  payload
//
// The generation in each frame keeps old bytes of a reused file from being read as new ones. Everything here is pure and safe
// for concurrent use.
package frame

import (
	"encoding/binary"
	"hash/crc32"
)

// Size is the length of a frame without its payload.
const Size = 20

// Flags of a frame.
const (
	More  = 1 // the next frame belongs to the same call
	First = 2 // the first frame of a write: everything before it was synced when it was written
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the checksum of all formats: CRC-32C over the parts one after the other.
func Sum(parts ...[]byte) uint32 {
	var sum uint32
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// Frame is a parsed frame. The payload aliases the bytes it was parsed from.
type Frame struct {
	Type, Version, Flags byte
	Payload              []byte
}

// Len is the length of the whole frame.
func (f Frame) Len() int { return Size + len(f.Payload) }

// Append adds a frame whose payload is the parts one after the other.
func Append(buf []byte, generation uint64, typ, version, flags byte, payload ...[]byte) []byte {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	at := len(buf)
	buf = append(buf, make([]byte, Size)...)
	for _, p := range payload {
		buf = append(buf, p...)
	}
	h := buf[at : at+Size]
	binary.LittleEndian.PutUint32(h, uint32(n))
	h[4], h[5], h[6] = typ, version, flags
	binary.LittleEndian.PutUint64(h[8:], generation)
	binary.LittleEndian.PutUint32(h[16:], Sum(h[:16], buf[at+Size:]))
	return buf
}

// Length reads the payload length that the frame at the start of data claims; false when no frame of this generation with a
// payload of at most limit bytes can begin there.
func Length(data []byte, generation uint64, limit int) (int, bool) {
	if len(data) < Size {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(data)
	if uint64(n) > uint64(limit) || data[6] > More|First || data[7] != 0 || binary.LittleEndian.Uint64(data[8:]) != generation {
		return 0, false
	}
	return int(n), true
}

// Parse reads the frame at the start of data. It returns false for anything that is not a whole, intact frame of the generation
// with a payload of at most limit bytes.
func Parse(data []byte, generation uint64, limit int) (Frame, bool) {
	n, ok := Length(data, generation, limit)
	if !ok || n > len(data)-Size {
		return Frame{}, false
	}
	payload := data[Size : Size+n]
	if binary.LittleEndian.Uint32(data[16:]) != Sum(data[:16], payload) {
		return Frame{}, false
	}
	return Frame{Type: data[4], Version: data[5], Flags: data[6], Payload: payload}, true
}

// Next finds the first intact frame in data for which accept is true and returns where it begins; -1 when there is none. It
// looks at every byte: for what is behind damage.
func Next(data []byte, generation uint64, limit int, accept func(Frame) bool) int {
	for i := 0; i+Size <= len(data); i++ {
		if data[i+8] != byte(generation) || data[i+7] != 0 {
			continue
		}
		if f, ok := Parse(data[i:], generation, limit); ok && accept(f) {
			return i
		}
	}
	return -1
}

// BeginsWrite reports whether f is the first frame of a write.
func BeginsWrite(f Frame) bool { return f.Flags&First != 0 }
