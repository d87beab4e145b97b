package cas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/vfs"
)

const (
	packMagic     = "repapack"
	packVersion   = 1
	packHash      = "blake3-256"
	segmentHeader = 64
	packsDir      = "packs"
	packSuffix    = ".pack"
)

// segment is one pack file.
type segment struct {
	end     int64 // of its records; what is behind it was never acknowledged
	live    int64 // bytes of records that the table points at
	objects int
}

// dead returns the bytes that collection could free.
func (s *segment) dead() int64 { return s.end - segmentHeader - s.live }

func segmentName(generation uint32) string { return fmt.Sprintf("%08x%s", generation, packSuffix) }

func segmentPath(generation uint32) string { return packsDir + "/" + segmentName(generation) }

// packs lists the generations of the pack files, ascending.
func packs(fsys vfs.FS) ([]uint32, error) {
	entries, err := fsys.ReadDir(packsDir)
	if err != nil {
		return nil, err
	}
	var out []uint32
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), packSuffix); ok {
			if g, err := strconv.ParseUint(base, 16, 32); err == nil && segmentName(uint32(g)) == e.Name() {
				out = append(out, uint32(g))
			}
		}
	}
	return out, nil
}

// head is what a pack file says about itself and the one before it.
type head struct {
	generation uint32
	previous   uint32 // the generation before; 0: none
	end        int64  // where the records of the previous one end
}

func (h head) encode() []byte {
	b := make([]byte, segmentHeader)
	copy(b, packMagic)
	binary.LittleEndian.PutUint32(b[8:], packVersion)
	binary.LittleEndian.PutUint32(b[12:], h.generation)
	binary.LittleEndian.PutUint32(b[16:], h.previous)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.end))
	copy(b[32:48], packHash)
	binary.LittleEndian.PutUint32(b[60:], frame.Sum(b[:60]))
	return b
}

var errHeader = errors.New("no intact pack header")

func decodeHead(b []byte, generation uint32) (head, error) {
	if len(b) < segmentHeader || string(b[:8]) != packMagic || binary.LittleEndian.Uint32(b[60:]) != frame.Sum(b[:60]) ||
		binary.LittleEndian.Uint32(b[12:]) != generation {
		return head{}, errHeader
	}
	hash := string(bytes.TrimRight(b[32:48], "\x00"))
	if version := binary.LittleEndian.Uint32(b[8:]); version > packVersion || hash != packHash {
		return head{}, fmt.Errorf("%w (pack format %d with %s; this version reads up to %d with %s)", ErrNewerFormat, version, hash, packVersion, packHash)
	}
	return head{generation, binary.LittleEndian.Uint32(b[16:]), int64(binary.LittleEndian.Uint64(b[24:]))}, nil
}

// span is an intact frame in a segment.
type span struct {
	frame.Frame
	offset int64
}

// gap is a part of a segment that does not check although it was acknowledged.
type gap struct {
	segment    uint32
	start, end int64
}

// scanner reads the frames of a segment one after the other in constant memory.
type scanner struct {
	file       vfs.File
	generation uint64
	at         int64 // of the next frame
	buf        []byte
	start      int64 // of buf in the file
	size       int64 // of the file; there may be more by now
	eof        bool
}

func newScanner(file vfs.File, generation uint64, from, size int64) *scanner {
	return &scanner{file: file, generation: generation, at: from, start: from, size: size}
}

// scanRead is how much a scanner reads at once: the disk's bandwidth is reached, and memory stays small.
const scanRead = 1 << 20

// fill makes n bytes from at available, fewer at the end of the file.
func (s *scanner) fill(n int) ([]byte, error) {
	if have := s.start + int64(len(s.buf)) - s.at; have < int64(n) && !s.eof {
		rest := s.buf[min(int64(len(s.buf)), s.at-s.start):]
		buf := make([]byte, max(min(scanRead, s.size-s.at), int64(n)))
		k := copy(buf, rest)
		read, err := s.file.ReadAt(buf[k:], s.at+int64(k))
		if errors.Is(err, io.EOF) {
			s.eof, err = true, nil
		}
		if err != nil {
			return nil, err
		}
		s.buf, s.start = buf[:k+read], s.at
	}
	out := s.buf[s.at-s.start:]
	return out[:min(n, len(out))], nil
}

// next returns the frame at the scanner's place and moves behind it; false when none is intact there. The payload is valid until the
// next call but one.
func (s *scanner) next() (span, bool, error) {
	data, err := s.fill(frame.Size)
	if err != nil {
		return span{}, false, err
	}
	n, ok := frame.Length(data, s.generation, maxPayload)
	if !ok {
		return span{}, false, nil
	}
	if data, err = s.fill(frame.Size + n); err != nil {
		return span{}, false, err
	}
	f, ok := frame.Parse(data, s.generation, maxPayload)
	if !ok {
		return span{}, false, nil
	}
	out := span{f, s.at}
	s.at += int64(f.Len())
	return out, true, nil
}

// searchRead is how far ahead a search for an intact frame looks at once; it goes on with an overlap of the largest frame.
const searchRead = 8 << 20

// search looks behind the scanner's place, and before end, for an intact frame that accept takes; -1 when there is none.
func (s *scanner) search(end int64, accept func(frame.Frame) bool) (int64, error) {
	for at := s.at + 1; at < end; at += searchRead {
		buf := make([]byte, min(end-at, searchRead+maxFrame)) // as a rule the zeros ahead of a pack that was not closed
		n, err := s.file.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return -1, err
		}
		if i := frame.Next(buf[:n], s.generation, maxPayload, accept); i >= 0 {
			return at + int64(i), nil
		}
		if n < len(buf) {
			break
		}
	}
	return -1, nil
}

// anything reports whether a byte that is not zero stands between the scanner's place and end.
func (s *scanner) anything(end int64) (bool, error) {
	for s.at < end {
		data, err := s.fill(int(min(scanRead, end-s.at)))
		if err != nil || len(data) == 0 {
			return false, err
		}
		if len(bytes.Trim(data, "\x00")) > 0 {
			return true, nil
		}
		s.at += int64(len(data))
	}
	return false, nil
}

// maxFrame is the longest frame that a search must be able to see whole: an object's. Longer ones, lists of very many holds, may be
// missed by it, and then count as damaged too.
const maxFrame = pieceMax + objectHead + frame.Size

// moveTo goes on elsewhere.
func (s *scanner) moveTo(at int64) {
	s.at, s.start, s.buf, s.eof = at, at, nil, false
}
