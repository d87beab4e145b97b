package text

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// write encodes a text. Of several codes for a character it takes the one that the programs of the encoding's home write.
func write(name, s string) ([]byte, error) {
	usual := usualCodes()[name]
	if usual == nil {
		return encodings[name].NewEncoder().Bytes([]byte(s))
	}
	out := make([]byte, 0, len(s))
	flush := func(s string) error {
		data, err := encodings[name].NewEncoder().Bytes([]byte(s))
		out = append(out, data...)
		return err
	}
	done := 0
	for i, r := range s {
		if code, ok := usual[r]; ok {
			if err := flush(s[done:i]); err != nil {
				return nil, err
			}
			out, done = append(out, byte(code>>8), byte(code)), i+utf8.RuneLen(r)
		}
	}
	return out, flush(s[done:])
}

// usualCodes are the codes of characters that have several and for which the library's encoder takes another than the usual one, by encoding. For some
// common Big5 characters, as 包 and 港, it takes codes of Hong Kong's extension, which Windows cannot read and no other program writes; for the
// characters that IBM added to Shift_JIS those of NEC, which the WHATWG's standard excludes as well.
var usualCodes = sync.OnceValue(func() map[string]map[rune]uint16 {
	out := map[string]map[rune]uint16{Big5: {}, ShiftJIS: {}}
	add := func(name string, first, last uint16, unusual func(code uint16) bool) {
		for code := int(first); code <= int(last); code++ {
			data := []byte{byte(code >> 8), byte(code)}
			s, err := encodings[name].NewDecoder().Bytes(data)
			r, n := utf8.DecodeRune(s)
			if err != nil || r == utf8.RuneError || n != len(s) {
				continue
			}
			back, err := encodings[name].NewEncoder().Bytes(s)
			if err != nil || len(back) != 2 || bytes.Equal(back, data) || !unusual(uint16(back[0])<<8|uint16(back[1])) {
				continue
			}
			if _, known := out[name][r]; !known {
				out[name][r] = uint16(code)
			}
		}
	}
	extension := func(code uint16) bool { return code >= 0xc6a1 && code < 0xc940 || code > 0xf9fe }
	add(Big5, 0xa140, 0xc67e, extension) // symbols and level 1
	add(Big5, 0xc940, 0xf9d5, extension) // level 2
	add(ShiftJIS, 0xfa40, 0xfc4b, func(code uint16) bool { return code >= 0xed40 && code <= 0xeefc })
	return out
})
