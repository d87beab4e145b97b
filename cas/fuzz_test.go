package cas_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

// correct gives every frame in a file the checksum of what it has become, so that a fuzzer reaches what is behind it.
func correct(data []byte, from int) []byte {
	data = bytes.Clone(data)
	for at := from; at+frame.Size <= len(data); {
		h := data[at : at+frame.Size]
		n := int64(binary.LittleEndian.Uint32(h))
		if n > int64(len(data)-at-frame.Size) {
			break
		}
		binary.LittleEndian.PutUint32(h[16:], frame.Sum(h[:16], data[at+frame.Size:][:n]))
		at += frame.Size + int(n)
	}
	return data
}

// exercise does to a store with a strange file what a program does. Nothing may panic or hang; errors are expected.
func exercise(t *testing.T, disk *crashfs.FS, file string) {
	was, err := readAll(disk, file)
	if err != nil {
		t.Fatal(err)
	}
	opts := cas.Options{FS: disk, Grace: -1, Elapsed: (&manual{}).now}
	opts.ReadOnly = true
	if r, err := cas.Open(ctx, "store", opts); err == nil {
		read(t, r)
		closeStore(t, r)
	}
	if is, err := readAll(disk, file); err != nil || !bytes.Equal(is, was) {
		t.Fatalf("a reader changed the file: %v", err)
	}
	opts.ReadOnly = false
	s, err := cas.Open(ctx, "store", opts)
	if err != nil {
		if is, rerr := readAll(disk, file); rerr != nil || !bytes.Equal(is, was) {
			t.Fatalf("refused (%v), and changed the file: %v", err, rerr)
		}
		return
	}
	defer s.Close()
	read(t, s)
	id, err := s.Put(ctx, nothing(1))
	if err == nil {
		wantBytes(t, s, id, nothing(1))
	} else if !errors.Is(err, cas.ErrReadOnly) {
		t.Fatalf("put: %v", err)
	}
	_ = s.Hold(ctx, ownerA, id)
	if _, err := s.Repair(ctx, nil); err != nil && !errors.Is(err, cas.ErrReadOnly) {
		t.Fatalf("repair: %v", err)
	}
	if _, err := s.Collect(ctx); err != nil && !errors.Is(err, cas.ErrReadOnly) && !errors.Is(err, cas.ErrInDoubt) {
		t.Fatalf("collect: %v", err)
	}
	read(t, s)
	closeStore(t, s)
	if s, err = cas.Open(ctx, "store", opts); err != nil {
		t.Fatalf("opened again: %v", err)
	}
	closeStore(t, s)
}

// read reads everything; what comes without an error is what its id says.
func read(t *testing.T, s *cas.Store) {
	if _, err := s.Verify(ctx, nil); err != nil {
		t.Fatalf("verify: %v", err)
	}
	for info := range s.All() {
		if data, err := s.Get(ctx, info.ID, 8<<20); err == nil && cas.Sum(data) != info.ID {
			t.Fatalf("%s: other bytes", info.ID)
		}
		s.Owners(info.ID)
	}
	for o := range s.AllOwners("") {
		s.Held(o)
		s.Remains(o)
	}
	s.Stats()
}

// seeds are the files of a real store, pack and checkpoint.
func seeds(t testing.TB) (pack, checkpoint []byte) {
	disk := crashfs.New()
	s := open(t, cas.Options{FS: disk, Elapsed: (&manual{}).now})
	ids := must[[]cas.ID](t)(s.PutHeld(ctx, ownerA, dataX, dataY))
	ok(t, s.Replace(ctx, ownerB, ids...))
	ok(t, s.Lease(ctx, ownerL, 1000, ids[0]))
	ok(t, s.Release(ctx, ownerA, ids[1]))
	ok(t, s.EndLease(ctx, lease("other")))
	closeStore(t, s)
	pack, err := readAll(disk, "packs/00000001.pack")
	ok(t, err)
	checkpoint, err = readAll(disk, "checkpoint-0000000000000001")
	ok(t, err)
	return bytes.TrimRight(pack, "\x00"), checkpoint
}

func FuzzPack(f *testing.F) {
	pack, _ := seeds(f)
	f.Add(pack, false)
	f.Add(pack[:len(pack)-7], true)
	f.Add([]byte("repapack, and then something else that is longer than a header of a pack is"), false)
	f.Add([]byte{}, false)
	header := pack[:64]
	f.Add(frame.Append(bytes.Clone(header), 1, 9, 1, frame.First, []byte{1, 0, 0, 0}), false) // removes itself
	// and then has an object
	f.Add(append(frame.Append(bytes.Clone(header), 1, 9, 1, frame.First, []byte{1, 0, 0, 0}), pack[64:]...), false)
	f.Add(frame.Append(bytes.Clone(header), 1, 2, 1, frame.First, bytes.Repeat([]byte{0xff}, 200)), false)
	f.Fuzz(func(t *testing.T, data []byte, corrected bool) {
		if corrected {
			data = correct(data, 64)
		}
		disk := crashfs.New()
		ok(t, vfs.MkdirAll(disk, "packs", 0o700))
		write(t, disk, "packs/00000001.pack", data)
		exercise(t, disk, "packs/00000001.pack")
	})
}

func FuzzCheckpoint(f *testing.F) {
	pack, checkpoint := seeds(f)
	f.Add(checkpoint)
	f.Add(checkpoint[:len(checkpoint)/2])
	le := binary.LittleEndian
	head := frame.Append(nil, 1, 1, 1, 0, append(le.AppendUint64(le.AppendUint32(nil, 1), 64), make([]byte, 32)...))
	segments := frame.Append(nil, 1, 2, 1, 0, le.AppendUint64(le.AppendUint32(nil, 1), 64))
	object := func(number, offset, stored, size uint32) []byte {
		id := cas.Sum(dataX)
		b := append(le.AppendUint32(nil, number), id[:]...)
		for _, v := range []uint32{1, offset, stored, size} {
			b = le.AppendUint32(b, v)
		}
		return frame.Append(nil, 1, 5, 1, 0, b)
	}
	sizes := frame.Append(nil, 1, 6, 1, 0, le.AppendUint64(le.AppendUint32(nil, 1), 1<<62))
	end := frame.Append(nil, 1, 7, 1, 0)
	f.Add(bytes.Join([][]byte{head, segments, object(1<<32-1, 64, 100, 300), end}, nil))              // a number beyond all others
	f.Add(bytes.Join([][]byte{head, segments, object(1, 64, 1<<32-1, 300), end}, nil))                // a record of 4 GiB
	f.Add(bytes.Join([][]byte{head, segments, object(1, 64, 100, 1<<32-1), sizes, end}, nil))         // an object of 4 EiB
	f.Add(bytes.Join([][]byte{head, segments, object(1, 64, 0, 300), object(1, 64, 0, 1), end}, nil)) // the same number twice
	f.Add(bytes.Join([][]byte{frame.Append(nil, 1, 1, 1, 0, bytes.Repeat([]byte{0xff}, 44)), end}, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		disk := crashfs.New()
		ok(t, vfs.MkdirAll(disk, "packs", 0o700))
		write(t, disk, "packs/00000001.pack", pack)
		write(t, disk, "checkpoint-0000000000000001", correct(data, 0))
		exercise(t, disk, "checkpoint-0000000000000001")
	})
}

// A pack in which nothing is intact is kept and reported, and nothing is collected before it is put aside.
func TestPackOfNoise(t *testing.T) {
	disk := crashfs.New()
	ok(t, vfs.MkdirAll(disk, "packs", 0o700))
	noise := bytes.Repeat([]byte("noise "), 100)
	write(t, disk, "packs/00000001.pack", noise)
	s := open(t, cas.Options{FS: disk})
	if v := must[cas.Verification](t)(s.Verify(ctx, nil)); v.Sound() {
		t.Error("it is sound")
	}
	if _, err := s.Collect(ctx); !errors.Is(err, cas.ErrInDoubt) {
		t.Errorf("collect: %v", err)
	}
	out := must[cas.Repaired](t)(s.Repair(ctx, nil))
	if len(out.Aside) != 1 {
		t.Fatalf("%+v", out)
	}
	if is, err := readAll(disk, out.Aside[0]); err != nil || !bytes.Equal(is, noise) {
		t.Errorf("%d bytes, %v", len(is), err)
	}
	if v := must[cas.Verification](t)(s.Verify(ctx, nil)); !v.Sound() {
		t.Errorf("%+v", v)
	}
	closeStore(t, s)
}
