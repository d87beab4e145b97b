package fake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/server"
)

// Expiry is until when every upload stays.
const Expiry protocol.Millis = 1764547800000

// resource is the bytes of one.
type resource struct{ *bytes.Reader }

// Close implements io.Closer.
func (resource) Close() error { return nil }

// Keep stores bytes as an upload does and gives their id: a digest, but not that of a real backend.
func (b *Backend) Keep(space protocol.ID, data []byte) protocol.ID {
	digest := sha256.Sum256(data)
	id := protocol.ID(hex.EncodeToString(digest[:]))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes[space+"/"+id] = bytes.Clone(data)
	return id
}

// OpenResource implements server.Backend.
func (b *Backend) OpenResource(_ context.Context, space, id protocol.ID) (server.Resource, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isOpen(space) {
		return nil, notOpen(space)
	}
	data, ok := b.bytes[space+"/"+id]
	if !ok {
		return nil, protocol.Errorf(protocol.CodeRevisionUnavailable, "Resource %s is not in space %s", id, space)
	}
	return resource{bytes.NewReader(data)}, nil
}

// Upload implements server.Backend.
func (b *Backend) Upload(_ context.Context, host server.HostIdentity, space protocol.ID, mediaType string, body io.Reader) (protocol.ResourcePreparation, error) {
	if err := b.mayUpload(host, space, server.ErrUnknownHost); err != nil {
		return protocol.ResourcePreparation{}, err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return protocol.ResourcePreparation{}, err
	}
	if err := b.mayUpload(host, space, protocol.Errorf(protocol.CodeClosed, "Host %s has detached", host.ID)); err != nil {
		return protocol.ResourcePreparation{}, err
	}
	id := b.Keep(space, data)
	ref := protocol.ResourceRef{SpaceID: space, ID: id, MediaType: mediaType}
	return protocol.ResourcePreparation{ID: "preparation-" + id[:8], Resource: ref, ExpiresAt: Expiry}, nil
}

// mayUpload answers gone for a host without a connection.
func (b *Backend) mayUpload(host server.HostIdentity, space protocol.ID, gone error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		if c.host == host && !c.detached {
			if !b.isOpen(space) {
				return notOpen(space)
			}
			return nil
		}
	}
	return gone
}

func (b *Backend) isOpen(space protocol.ID) bool {
	return slices.ContainsFunc(b.state.Spaces, func(s protocol.Space) bool { return s.ID == space })
}

func notOpen(space protocol.ID) error {
	return protocol.Errorf(protocol.CodeNotFound, "Space %s is not open", space)
}
