package space_test

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space"
)

// withObject makes a space whose store holds one object, and closes it.
func withObject(t *testing.T, dir, text string) cas.ID {
	t.Helper()
	s := open(t, dir)
	ids, err := s.Store().PutHeld(ctx, cas.Owner{Kind: cas.OwnerRequest, ID: "r"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// change edits the only pack of a space.
func changePack(t *testing.T, dir string, edit func([]byte)) string {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, ".repa", "cas", "packs", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("packs %v, %v", packs, err)
	}
	data, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	edit(data)
	if err := os.WriteFile(packs[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheStoreIsOpenAsLongAsTheSpace(t *testing.T) {
	dir := t.TempDir()
	id := withObject(t, dir, "kept")
	s := open(t, dir)
	store := s.Store()
	if data, err := store.Get(ctx, id, -1); string(data) != "kept" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if owners := store.Owners(id); len(owners) != 1 || owners[0].String() != "request:r" {
		t.Errorf("owners %v", owners)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(ctx, []byte("late")); code(err) != "closed" {
		t.Errorf("a store whose space was closed: %v", err)
	}
}

func TestOptionsReachTheStore(t *testing.T) {
	opts := options()
	opts.Store = cas.Options{Grace: -1, ReadOnly: true}
	s, err := space.Open(ctx, t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Store().Put(ctx, []byte("nobody's")); err != nil {
		t.Fatalf("an open space writes: %v", err)
	}
	if c, err := s.Store().Collect(ctx); err != nil || c.Objects != 1 {
		t.Errorf("without grace: %+v, %v", c, err)
	}
}

// A store of a newer version is refused with a sentence that says so, before anything is changed.
func TestNewerStore(t *testing.T) {
	dir := t.TempDir()
	withObject(t, dir, "kept")
	checkpoints, err := filepath.Glob(filepath.Join(dir, ".repa", "cas", "checkpoint-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checkpoints { // so that the pack is read
		if err := os.Remove(c); err != nil {
			t.Fatal(err)
		}
	}
	newer := changePack(t, dir, func(b []byte) {
		binary.LittleEndian.PutUint32(b[8:], 2)
		binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], crc32.MakeTable(crc32.Castagnoli)))
	})
	_, err = space.Open(ctx, dir, options())
	if code(err) != "content_format_unavailable" || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "use the newer version") {
		t.Errorf("%s: %v", code(err), err)
	}
	if again := changePack(t, dir, func([]byte) {}); again != newer {
		t.Error("the pack was changed")
	}
}

// Damage in the store keeps no space from being opened: the rest of it can be used.
func TestDamagedStoreOpens(t *testing.T) {
	dir := t.TempDir()
	id := withObject(t, dir, strings.Repeat("kept ", 100))
	changePack(t, dir, func(b []byte) { b[120] ^= 1 })
	s := open(t, dir)
	if _, err := s.Store().Get(ctx, id, -1); code(err) != "invalid_storage" || !strings.Contains(err.Error(), "request:r") {
		t.Errorf("%s: %v", code(err), err)
	}
	if _, err := s.Store().Put(ctx, []byte("text")); err != nil {
		t.Error(err)
	}
}

// A .repa from before there was a store gets one.
func TestOlderSpaceGetsAStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := s.ID()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, ".repa", "cas")); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if _, err := s.Store().Put(ctx, []byte("x")); err != nil || s.ID() != id {
		t.Errorf("%q, %v", s.ID(), err)
	}
}
