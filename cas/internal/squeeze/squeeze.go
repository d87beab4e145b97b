package squeeze

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxSize is the largest source that is compressed, and so the largest size that Decode accepts: 64 pieces of a large object,
	// far above any record, and still no harm to a machine when a damaged record says so.
	MaxSize = 64 << 20

	// minSize is the length below which compression is not tried: the frame alone takes 9 bytes, and what zstd then saves of 64
	// bytes of text is nothing.
	minSize = 64

	// probeSize is how much of a large source is compressed to find out about the rest: enough for zstd to find repetitions, and
	// one part in 16 of a piece of the usual size.
	probeSize = 16 << 10

	// windowSize is the greatest distance of a repetition: the largest piece of a large object. It decides what an encoder holds.
	windowSize = 1 << 20
)

// Encode appends the compressed form of src to dst and reports true. When compression does not pay it reports false, and out has
// the bytes of dst only, though perhaps in more memory, for the sake of the next call. src and dst must not overlap.
func Encode(dst, src []byte) (out []byte, ok bool) {
	if len(src) < minSize || len(src) > MaxSize {
		return dst, false
	}
	even := looksEven(src)
	if even && len(src) <= probeSize {
		return dst, false
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	if even && !e.pays(src[:probeSize]) && !e.pays(src[(len(src)-probeSize)/2:][:probeSize]) {
		return dst, false
	}
	dst = slices.Grow(dst, e.zstd.MaxEncodedSize(len(src)))
	out = e.zstd.EncodeAll(src, dst)
	if !pays(len(src), len(out)-len(dst)) {
		return dst, false
	}
	return out, true
}

// pays reports whether n bytes instead of size are worth it.
func pays(size, n int) bool { return n <= size-size/10 }

// looksEven reports whether the byte values of src occur too evenly for an entropy code to save a tenth. It looks at 16 places
// spread over src, 512 bytes in all, and counts the pairs of equal bytes. Of random bytes one pair in 256 is equal; of bytes that
// use 147 values evenly, which is 7.2 bits each and saves a tenth, one in 147. The counts differ by 17 standard deviations.
func looksEven(src []byte) bool {
	const places, length = 16, 32
	var seen [256]uint16
	pairs, n := 0, 0
	count := func(part []byte) {
		for _, b := range part {
			pairs += int(seen[b])
			seen[b]++
		}
		n += len(part)
	}
	if len(src) <= places*length {
		count(src)
	} else {
		for i := range places {
			count(src[(len(src)-length)*i/(places-1):][:length])
		}
	}
	return pairs*147 < n*(n-1)/2
}

// encoder is one zstd encoder and room for what becomes of a probe.
type encoder struct {
	zstd  *zstd.Encoder
	probe []byte
}

func (e *encoder) pays(sample []byte) bool {
	e.probe = e.zstd.EncodeAll(sample, e.probe[:0])
	return pays(len(sample), len(e.probe))
}

var encoders = sync.Pool{New: func() any {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true), zstd.WithWindowSize(windowSize), zstd.WithLowerEncoderMem(true),
		zstd.WithAllLitEntropyCompression(true)) // base64 and short texts repeat nothing, and still save a quarter
	if err != nil {
		panic(err) // the options do not fit this version of the library
	}
	return &encoder{z, make([]byte, 0, z.MaxEncodedSize(probeSize))}
}}

var decoders = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxSize), zstd.WithDecoderMaxWindow(MaxSize),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options do not fit this version of the library
	}
	return z
}}

// ErrCorrupt is in every error of Decode: the bytes are not what Encode made of a source of that size.
var ErrCorrupt = errors.New("corrupt compressed record")

// Decode appends to dst the source of size bytes that src is the compressed form of. It fails, and returns dst as it was, when src
// cannot be opened to exactly size bytes; damage that still can is left for the digest to find. It allocates what growing dst by
// size bytes takes and a constant, whatever src says; size must come from where it can be trusted, or be bounded by the caller.
// src and dst must not overlap.
func Decode(dst, src []byte, size int) ([]byte, error) {
	var header zstd.Header
	if err := header.Decode(src); err != nil {
		return dst, corrupt(src, size, err)
	}
	if !header.SingleSegment || header.DictionaryID != 0 || size < 0 || size > MaxSize || header.FrameContentSize != uint64(size) {
		return dst, corrupt(src, size, fmt.Errorf("its header is of another form or tells of %d bytes", header.FrameContentSize))
	}
	z := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(z)
	grown := slices.Grow(dst, size)
	end := len(dst) + size
	out, err := z.DecodeAll(src, grown[len(dst):len(dst):end])
	if err == nil && len(out) != size {
		err = fmt.Errorf("it holds %d bytes", len(out))
	}
	if err != nil {
		return dst, corrupt(src, size, err)
	}
	copy(grown[len(dst):end], out) // nothing to do unless the library allocated
	return grown[:end], nil
}

func corrupt(src []byte, size int, cause error) error {
	return fmt.Errorf("decompress %d bytes to %d: %w: %w", len(src), size, ErrCorrupt, cause)
}
