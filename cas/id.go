package cas

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/blake3"

	"github.com/repa-app/repa/cas/internal/tree"
)

// IDSize is the length of a digest in bytes: 256 bits, collision resistance of 128 bits.
const IDSize = 32

// ID is the BLAKE3-256 digest of an object's uncompressed bytes. Its text form is 64 lower-case hexadecimal digits.
type ID [IDSize]byte

// String returns the text form.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id was never set.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; it accepts what ParseID accepts.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// ParseID reads the text form. Upper-case digits are refused: an id has one spelling.
func ParseID(text string) (ID, error) {
	var id ID
	if len(text) != 2*IDSize {
		return ID{}, fmt.Errorf("object id %q: want %d hexadecimal digits, got %d characters", text, 2*IDSize, len(text))
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ID{}, fmt.Errorf("object id %q: %q is no lower-case hexadecimal digit", text, c)
		}
	}
	_, err := hex.Decode(id[:], []byte(text))
	return id, err
}

// Sum returns the id of data.
func Sum(data []byte) ID {
	const short = 8 << 10 // up to here the one implementation is faster, beyond it the other
	if len(data) <= short {
		return blake3.Sum256(data)
	}
	return tree.Sum(data)
}

// SumReader returns the id of what r gives, in constant memory. Errors: those of r and of ctx.
func SumReader(ctx context.Context, r io.Reader) (ID, error) {
	var h tree.Hasher
	mem := buffer(1 << 20)
	defer giveBack(mem)
	for buf := (*mem)[:1<<20]; ; {
		if err := ctx.Err(); err != nil {
			return ID{}, err
		}
		n, err := io.ReadFull(r, buf)
		h.Write(buf[:n]) // never fails
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			root, _ := h.Sum()
			return root, nil
		case err != nil:
			return ID{}, err
		}
	}
}
