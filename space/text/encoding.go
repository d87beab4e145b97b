package text

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

// Names of encodings.
const (
	UTF8     = "utf-8"
	UTF16LE  = "utf-16le"
	UTF16BE  = "utf-16be"
	GB18030  = "gb18030"
	Big5     = "big5"
	ShiftJIS = "shift_jis"
	EUCKR    = "euc-kr"
)

var encodings = map[string]encoding.Encoding{
	UTF16LE: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), UTF16BE: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	GB18030: simplifiedchinese.GB18030, Big5: traditionalchinese.Big5, ShiftJIS: japanese.ShiftJIS, EUCKR: korean.EUCKR,
}

// marks are the byte order marks.
var marks = map[string][]byte{UTF8: {0xef, 0xbb, 0xbf}, UTF16LE: {0xff, 0xfe}, UTF16BE: {0xfe, 0xff}}

// Text is a decoded text together with how it was encoded.
type Text struct {
	s        string
	encoding string
	bom      bool
}

// String returns the text without byte order mark.
func (t Text) String() string { return t.s }

// Encoding returns the name of the encoding.
func (t Text) Encoding() string {
	if t.encoding == "" {
		return UTF8
	}
	return t.encoding
}

// BOM reports whether the bytes began with a byte order mark.
func (t Text) BOM() bool { return t.bom }

// Encode returns another text in the same encoding, with a byte order mark when there was one. What both texts have in common has the same
// bytes. Errors: code unsupported_format for a character that the encoding has not.
func (t Text) Encode(s string) ([]byte, error) {
	var out []byte
	if t.bom {
		out = bytes.Clone(marks[t.Encoding()])
	}
	if t.Encoding() == UTF8 {
		return append(out, s...), nil
	}
	if !utf8.ValidString(s) {
		return nil, fail("unsupported_format", "the text is not valid UTF-8")
	}
	data, err := write(t.encoding, s)
	if err != nil {
		return nil, t.unencodable(s)
	}
	return append(out, data...), nil
}

// unencodable names the first character that the encoding has not.
func (t Text) unencodable(s string) error {
	for i, r := range s {
		if _, err := encodings[t.encoding].NewEncoder().String(string(r)); err != nil {
			return fail("unsupported_format", "the character %q in line %d cannot be written in %s, the encoding of the file; convert the file to UTF-8 first",
				r, 1+strings.Count(s[:i], "\n"), t.encoding)
		}
	}
	return fail("unsupported_format", "the text cannot be written in %s", t.encoding)
}

// IsText reports whether data is UTF-8 text: valid and without NUL.
func IsText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// Decode reads text in a declared encoding, or in the one that it is most likely in when declared is "". A legacy encoding is taken only when
// encoding the text again gives the same bytes, so that a change of one place leaves all others as they are. Errors: code unsupported_format for
// what is no text, or not in the declared encoding.
func Decode(data []byte, declared string) (Text, error) {
	if declared != "" {
		return decodeDeclared(data, strings.ToLower(declared))
	}
	for _, name := range []string{UTF8, UTF16LE, UTF16BE} {
		if rest, ok := bytes.CutPrefix(data, marks[name]); ok {
			if t, ok := decodeAs(rest, name); ok {
				t.bom = true
				return t, nil
			}
		}
	}
	if IsText(data) {
		return Text{s: string(data), encoding: UTF8}, nil
	}
	for _, name := range likeliest(data) {
		if t, ok := decodeAs(data, name); ok {
			return t, nil
		}
	}
	return Text{}, fail("unsupported_format", "it is no text in an encoding that can be recognised")
}

func decodeDeclared(data []byte, name string) (Text, error) {
	if _, known := encodings[name]; !known && name != UTF8 {
		return Text{}, fail("unsupported_format", "encoding %q is not known; known are utf-8, utf-16le, utf-16be, gb18030, big5, shift_jis and euc-kr", name)
	}
	rest, bom := bytes.CutPrefix(data, marks[name])
	bom = bom && marks[name] != nil
	if !bom {
		rest = data
	}
	t, ok := decodeAs(rest, name)
	if !ok {
		return Text{}, fail("unsupported_format", "it is not text in %s", name)
	}
	t.bom = bom
	return t, nil
}

// decodeAs reads bytes in an encoding; false when they are not in it, or when writing the text again would give other bytes.
func decodeAs(data []byte, name string) (Text, bool) {
	if name == UTF8 {
		return Text{s: string(data), encoding: UTF8}, IsText(data)
	}
	s, err := encodings[name].NewDecoder().Bytes(data)
	if err != nil || bytes.IndexByte(s, 0) >= 0 {
		return Text{}, false
	}
	t := Text{s: string(s), encoding: name}
	back, err := write(name, t.s)
	return t, err == nil && bytes.Equal(back, data)
}
