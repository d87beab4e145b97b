package recordlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/vfs"
)

// segmentSize is where a new segment begins: small enough to be read in one piece at open, large enough that a space has few.
const segmentSize = 16 << 20

// queueLimit bounds the appends that wait for the disk; further callers wait until there is room or their context ends.
const queueLimit = 4096

// groupBytes bounds one write, so that a long queue does not build one buffer of any size.
const groupBytes = 8 << 20

// Errors of this package. Damage and newer formats leave every file as it was.
var (
	ErrClosed = errors.New("log is closed")
	ErrFailed = errors.New("log refuses further records after a failed write; open it again to learn what reached the disk")
	// ErrNewerFormat: the log was written by a newer version of the program.
	ErrNewerFormat = errors.New("log has a newer format than this version of Repa reads; use the newer version")
)

// DamageError says where a log is damaged before its tail.
type DamageError struct {
	Segment string
	Offset  int64
	Reason  string
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("log segment %s is damaged at byte %d (%s); the file was left as it is", e.Segment, e.Offset, e.Reason)
}

// Options of Open. The zero value is right for products.
type Options struct {
	SegmentSize int64    // 0: 16 MiB. Tests use less.
	From        Position // replay begins here, where a record or the end of the log is: what comes before is known from a checkpoint
}

// Log is an open log. Its methods are safe for concurrent use.
type Log struct {
	fsys    vfs.FS
	size    int64 // of a segment
	queue   chan *batch
	late    chan struct{} // of one: something was deferred
	closing chan struct{}
	close   sync.Once
	done    chan struct{}

	mu       sync.Mutex
	deferred []Record
	end      Position

	// Owned by the writer goroutine after Open.
	file       vfs.File
	generation uint64
	offset     int64
	failed     error
	closeErr   error
}

type batch struct {
	records []Record
	at      Position // of the first record, once it is written
	done    chan error
}

// Open opens the log in the folder fsys, making the first segment when there is none, and hands every record to replay in
// order. The payload of a replayed record may be kept. Cut says how many bytes of a torn tail were moved aside.
//
// Errors: *DamageError, ErrNewerFormat, what replay returned, and errors of the disk.
func Open(ctx context.Context, fsys vfs.FS, opts Options, replay func(Record) error) (l *Log, cut int64, err error) {
	if opts.SegmentSize == 0 {
		opts.SegmentSize = segmentSize
	}
	generations, err := segments(fsys)
	if err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	l = &Log{fsys: fsys, size: opts.SegmentSize, queue: make(chan *batch, queueLimit), late: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{})}
	if len(generations) == 0 {
		err = l.startSegment(1)
	}
	for i, g := range generations {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if want := uint64(i + 1); g != want {
			return nil, 0, &DamageError{Segment: segmentName(want), Reason: "the segment is missing"}
		}
		newest := i == len(generations)-1
		if g < opts.From.Segment && !newest {
			continue
		}
		from := int64(headerSize)
		if g == opts.From.Segment {
			from = max(from, opts.From.Offset)
		}
		var data []byte
		if data, err = vfs.ReadFile(fsys, segmentName(g), -1); err != nil {
			break
		}
		var good int64
		if good, err = scan(data, g, newest, from, replay); err != nil {
			break
		}
		if newest {
			cut = int64(len(data)) - good
			err = l.resume(g, data, good)
		}
	}
	if err != nil {
		if l.file != nil {
			err = errors.Join(err, l.file.Close())
		}
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	l.end = Position{l.generation, l.offset}
	go l.write()
	return l, cut, nil
}

func segmentName(generation uint64) string { return fmt.Sprintf("%016x.log", generation) }

func segments(fsys vfs.FS) ([]uint64, error) {
	entries, err := fsys.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".log")
		if !ok || len(base) != 16 {
			continue
		}
		g, err := strconv.ParseUint(base, 16, 64)
		if err != nil || segmentName(g) != e.Name() {
			continue
		}
		out = append(out, g)
	}
	return out, nil
}

// scan replays a segment from a place on and returns where its good part ends. In any but the newest segment a bad frame is damage.
func scan(data []byte, generation uint64, newest bool, from int64, replay func(Record) error) (good int64, err error) {
	damage := func(offset int, reason string) error {
		return &DamageError{Segment: segmentName(generation), Offset: int64(offset), Reason: reason}
	}
	if err := checkHeader(data, generation); err != nil {
		if errors.Is(err, ErrNewerFormat) {
			return 0, err
		}
		if newest && !syncedBehind(data, generation) {
			return 0, nil // torn while it was made: nothing in it was acknowledged
		}
		return 0, damage(0, err.Error())
	}
	var call []Record // the records of one Append call, until its last one is seen
	if from > int64(len(data)) {
		return 0, damage(len(data), fmt.Sprintf("a checkpoint covers it up to byte %d", from))
	}
	offset, callStart := int(from), int(from)
	for offset < len(data) {
		f, ok := frame.Parse(data[offset:], generation, MaxPayload)
		if !ok {
			if !newest {
				return 0, damage(offset, "record does not match its checksum")
			}
			if syncedBehind(data[offset+1:], generation) {
				return 0, damage(offset, "record does not match its checksum, and later ones do")
			}
			break
		}
		call = append(call, Record{Type: f.Type, Version: f.Version, Payload: f.Payload, At: Position{generation, int64(offset)}})
		offset += f.Len()
		if f.Flags&frame.More != 0 {
			continue
		}
		for _, r := range call {
			if err := replay(r); err != nil {
				return 0, err
			}
		}
		call, callStart = call[:0], offset
	}
	if len(call) > 0 && !newest {
		return 0, damage(callStart, "the last group of records is not complete")
	}
	return int64(callStart), nil
}

func checkHeader(data []byte, generation uint64) error {
	if len(data) < headerSize || string(data[:8]) != magic {
		return errors.New("no log segment header")
	}
	version := uint32(data[8]) | uint32(data[9])<<8 | uint32(data[10])<<16 | uint32(data[11])<<24
	sum := uint32(data[12]) | uint32(data[13])<<8 | uint32(data[14])<<16 | uint32(data[15])<<24
	if sum != headerSum(data[:12], generation) {
		return errors.New("segment header does not match its checksum")
	}
	if version > formatVersion {
		return fmt.Errorf("%w (format %d, this version reads up to %d)", ErrNewerFormat, version, formatVersion)
	}
	return nil
}

// resume continues the newest segment behind its good part. What is behind that is kept beside the segment, then cut.
func (l *Log) resume(generation uint64, data []byte, good int64) (err error) {
	tail := data[good:]
	if len(strings.Trim(string(tail), "\x00")) > 0 {
		aside := fmt.Sprintf("%s.torn-%d", segmentName(generation), good)
		if err := vfs.WriteFile(l.fsys, aside, tail, 0o600); err != nil {
			return err
		}
	}
	l.generation, l.offset = generation, good
	if l.file, err = l.fsys.OpenFile(segmentName(generation), os.O_RDWR, 0); err != nil {
		return err
	}
	if len(tail) > 0 {
		if err := l.file.Truncate(good); err != nil {
			return err
		}
	}
	if good == 0 {
		if _, err := l.file.WriteAt(segmentHeader(generation), 0); err != nil {
			return err
		}
		l.offset = headerSize
	}
	// What replay has shown may have been in memory only; from here on it counts as durable.
	if err := l.file.Sync(); err != nil {
		return err
	}
	return l.fsys.SyncDir(".")
}

func (l *Log) startSegment(generation uint64) error {
	name := segmentName(generation)
	f, err := l.fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(segmentHeader(generation), 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = l.fsys.SyncDir(".")
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.generation, l.offset = f, generation, headerSize
	return nil
}

// Append adds the records in order, all or none, and returns when they are durable. When ctx ends first it returns ctx's
// error and the records may or may not have been added.
func (l *Log) Append(ctx context.Context, records ...Record) error {
	_, err := l.AppendAt(ctx, records...)
	return err
}

// AppendAt is Append, and says where the first of the records stands. Records that were deferred come before them and are durable too.
func (l *Log) AppendAt(ctx context.Context, records ...Record) (Position, error) {
	if len(records) == 0 {
		return Position{}, nil
	}
	if err := checkSize(records); err != nil {
		return Position{}, err
	}
	b := &batch{records: records, done: make(chan error, 1)}
	select {
	case <-l.closing:
		return Position{}, ErrClosed
	default:
	}
	select {
	case l.queue <- b:
	case <-l.closing:
		return Position{}, ErrClosed
	case <-ctx.Done():
		return Position{}, ctx.Err()
	}
	select {
	case err := <-b.done:
		return b.at, err
	case <-ctx.Done():
		return Position{}, ctx.Err()
	case <-l.done:
		// The writer may have answered just before it ended.
		select {
		case err := <-b.done:
			return b.at, err
		default:
			return Position{}, ErrClosed
		}
	}
}

func checkSize(records []Record) error {
	for _, r := range records {
		if len(r.Payload) > MaxPayload {
			return fmt.Errorf("append to log: record of %d bytes is over the limit of %d", len(r.Payload), MaxPayload)
		}
	}
	return nil
}

// deferTime is how long deferred records wait for an append to ride with: a sync of their own is not worth it while others come.
const deferTime = 10 * time.Millisecond

// Defer adds records that need not be durable now: they are written before those of the next Append, by Close, or after a few milliseconds without
// either, and a crash until then may lose them.
// Errors: a record over the limit, ErrClosed.
func (l *Log) Defer(records ...Record) error {
	if err := checkSize(records); err != nil {
		return err
	}
	select {
	case <-l.closing:
		return ErrClosed
	default:
	}
	l.mu.Lock()
	l.deferred = append(l.deferred, records...)
	l.mu.Unlock()
	select {
	case l.late <- struct{}{}:
	default: // it is told already
	}
	return nil
}

// ReadAt reads the record at a place that AppendAt or replay told. Errors: *DamageError, errors of the disk.
func (l *Log) ReadAt(at Position) (Record, error) {
	name := segmentName(at.Segment)
	f, err := l.fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return Record{}, fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	damage := &DamageError{Segment: name, Offset: at.Offset, Reason: "record does not match its checksum"}
	data := make([]byte, frame.Size, 4<<10)
	if _, err := f.ReadAt(data, at.Offset); err != nil {
		return Record{}, readError(err, damage)
	}
	n, ok := frame.Length(data, at.Segment, MaxPayload)
	if !ok {
		return Record{}, damage
	}
	data = append(data, make([]byte, n)...)
	if _, err := f.ReadAt(data[frame.Size:], at.Offset+frame.Size); err != nil {
		return Record{}, readError(err, damage)
	}
	r, ok := frame.Parse(data, at.Segment, MaxPayload)
	if !ok {
		return Record{}, damage
	}
	return Record{Type: r.Type, Version: r.Version, Payload: r.Payload, At: at}, nil
}

func readError(err error, damage *DamageError) error {
	if errors.Is(err, io.EOF) {
		return damage
	}
	return fmt.Errorf("read log: %w", err)
}

// Close finishes the appends that wait, closes the file and waits for the writer. Calling it again returns the same error.
func (l *Log) Close() error {
	l.close.Do(func() { close(l.closing) })
	<-l.done
	return l.closeErr
}

func (l *Log) write() {
	defer close(l.done)
	timer := time.NewTimer(deferTime)
	timer.Stop()
	for {
		select {
		case b := <-l.queue:
			l.commit(l.gather(b))
		case <-l.late:
			timer.Reset(deferTime)
		case <-timer.C:
			if err := l.flush(); err != nil {
				l.failed = fmt.Errorf("%w: %w", ErrFailed, err)
			}
		case <-l.closing:
			timer.Stop()
			l.drain()
			l.closeErr = errors.Join(l.flush(), l.file.Close())
			return
		}
	}
}

func (l *Log) drain() {
	for {
		select {
		case b := <-l.queue:
			l.commit(l.gather(b))
		default:
			return
		}
	}
}

// gather takes what else waits, up to groupBytes.
func (l *Log) gather(first *batch) []*batch {
	group, size := []*batch{first}, first.size()
	for size < groupBytes {
		select {
		case b := <-l.queue:
			group, size = append(group, b), size+b.size()
		default:
			return group
		}
	}
	return group
}

func (b *batch) size() (n int) {
	for _, r := range b.records {
		n += frame.Size + len(r.Payload)
	}
	return n
}

// commit writes and syncs a group and answers its callers.
func (l *Log) commit(group []*batch) {
	err := l.failed
	if err == nil {
		if err = l.writeGroup(group); err != nil {
			l.failed = fmt.Errorf("%w: %w", ErrFailed, err)
			err = l.failed
		}
	}
	for _, b := range group {
		b.done <- err
	}
}

// flush writes what was deferred.
func (l *Log) flush() error {
	l.mu.Lock()
	none := len(l.deferred) == 0
	l.mu.Unlock()
	if none || l.failed != nil {
		return nil
	}
	return l.writeGroup(nil)
}

func (l *Log) writeGroup(group []*batch) error {
	l.mu.Lock()
	deferred := l.deferred
	l.deferred = nil
	l.mu.Unlock()
	if l.offset >= l.size {
		if err := l.file.Close(); err != nil {
			return err
		}
		if err := l.startSegment(l.generation + 1); err != nil {
			return err
		}
	}
	var buf []byte
	add := func(r Record, more bool) {
		var flags byte
		if len(buf) == 0 {
			flags |= frame.First
		}
		if more {
			flags |= frame.More
		}
		buf = frame.Append(buf, l.generation, r.Type, r.Version, flags, r.Payload)
	}
	for _, r := range deferred {
		add(r, false)
	}
	for _, b := range group {
		b.at = Position{l.generation, l.offset + int64(len(buf))}
		for i, r := range b.records {
			add(r, i < len(b.records)-1)
		}
	}
	n, err := l.file.WriteAt(buf, l.offset)
	if err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write log segment %s: %w", segmentName(l.generation), err)
	}
	l.offset += int64(len(buf))
	l.mu.Lock()
	l.end = Position{l.generation, l.offset}
	l.mu.Unlock()
	return nil
}
