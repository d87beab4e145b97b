package recordlog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/vfs"
)

const (
	checkpointName    = "checkpoint"
	checkpointMagic   = "repackpt"
	checkpointVersion = 1
	checkpointHead    = 32
	// maxSection bounds one section, as the length in its frame does.
	maxSection = 1<<31 - 1
)

// ErrNoCheckpoint: there is no checkpoint that can be used; the log says everything too.
var ErrNoCheckpoint = errors.New("there is no usable checkpoint")

// SaveCheckpoint replaces the checkpoint in the log's folder: what the sections say covers the log up to a place, so that the next Open may replay from
// there. It is durable when nil is returned; the log's own files are not touched.
func SaveCheckpoint(fsys vfs.FS, at Position, sections ...[]byte) error {
	head := make([]byte, checkpointHead)
	copy(head, checkpointMagic)
	binary.LittleEndian.PutUint32(head[8:], checkpointVersion)
	binary.LittleEndian.PutUint32(head[12:], uint32(len(sections)))
	binary.LittleEndian.PutUint64(head[16:], at.Segment)
	binary.LittleEndian.PutUint64(head[24:], uint64(at.Offset))
	out := frame.Append(nil, 0, 0, checkpointVersion, 0, head)
	for i, s := range sections {
		if len(s) > maxSection {
			return fmt.Errorf("save checkpoint: section %d of %d bytes is too large", i, len(s))
		}
		out = frame.Append(out, 0, byte(i+1), checkpointVersion, 0, s)
	}
	if err := vfs.WriteFile(fsys, checkpointName, out, 0o600); err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	return nil
}

// LoadCheckpoint reads the checkpoint. The log must have the place that it covers. Errors: ErrNoCheckpoint when there is none, or a damaged one, or one
// of a newer version; errors of the disk.
func LoadCheckpoint(fsys vfs.FS) (Position, [][]byte, error) {
	data, err := vfs.ReadFile(fsys, checkpointName, -1)
	if err != nil {
		return Position{}, nil, fmt.Errorf("%w: %w", ErrNoCheckpoint, err)
	}
	head, ok := frame.Parse(data, 0, maxSection)
	if !ok || head.Type != 0 || len(head.Payload) != checkpointHead || string(head.Payload[:8]) != checkpointMagic ||
		binary.LittleEndian.Uint32(head.Payload[8:]) != checkpointVersion {
		return Position{}, nil, fmt.Errorf("%w: it is damaged or of a newer version", ErrNoCheckpoint)
	}
	at := Position{binary.LittleEndian.Uint64(head.Payload[16:]), int64(binary.LittleEndian.Uint64(head.Payload[24:]))}
	var sections [][]byte
	rest := data[head.Len():]
	for i := range binary.LittleEndian.Uint32(head.Payload[12:]) {
		f, ok := frame.Parse(rest, 0, maxSection)
		if !ok || f.Type != byte(i+1) {
			return Position{}, nil, fmt.Errorf("%w: section %d is damaged", ErrNoCheckpoint, i)
		}
		sections, rest = append(sections, f.Payload), rest[f.Len():]
	}
	if !covers(fsys, at) {
		return Position{}, nil, fmt.Errorf("%w: it covers more than the log has", ErrNoCheckpoint)
	}
	return at, sections, nil
}

// covers reports whether the log has a place.
func covers(fsys vfs.FS, at Position) bool {
	info, err := fsys.Stat(segmentName(at.Segment))
	return err == nil && at.Offset >= headerSize && info.Size() >= at.Offset
}

// End is the place behind the last record. It is exact only while nobody appends.
func (l *Log) End() Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}
