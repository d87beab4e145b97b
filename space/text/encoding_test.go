package text_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"github.com/repa-app/repa/space/text"
)

var codecs = map[string]encoding.Encoding{
	text.GB18030: simplifiedchinese.GB18030, text.Big5: traditionalchinese.Big5, text.ShiftJIS: japanese.ShiftJIS, text.EUCKR: korean.EUCKR,
	text.UTF16LE: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), text.UTF16BE: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
}

// encode writes a text of the tests in an encoding.
func encode(t testing.TB, name, s string) []byte {
	t.Helper()
	if name == text.UTF8 {
		return []byte(s)
	}
	data, err := codecs[name].NewEncoder().Bytes([]byte(s))
	if err != nil {
		t.Fatalf("%q in %s: %v", s, name, err)
	}
	return data
}

func TestEncodingsAreRecognised(t *testing.T) {
	check := func(name, s string) {
		t.Helper()
		got, err := text.Decode(encode(t, name, s), "")
		if err != nil || got.Encoding() != name || got.String() != s || got.BOM() {
			t.Errorf("%q in %s was taken for %s: %q %v", s, name, got.Encoding(), got.String(), err)
		}
	}
	for name, samples := range notes {
		long := samples[0]
		check(name, strings.Repeat("plain ASCII before it\n", 5000)+long)
		check(name, strings.Repeat(long+"\n", 3000)) // what is judged ends somewhere in it
		for _, s := range samples {
			check(name, s)
			check(text.UTF8, s)
			if utf8.RuneCountInString(s) > 2 {
				check(text.UTF16LE, s)
				check(text.UTF16BE, s)
			}
			check(name, "---\ntitle: note\n---\n\n"+s+"\n\nSee [[other note]] and https://example.org/a?b=c.\n")
		}
	}
	for _, s := range wideOnly {
		check(text.UTF16LE, s)
		check(text.UTF16BE, s)
	}
}

// A part of a note is not taken for another encoding, wherever it is cut, unless it has next to nothing to tell it by.
func TestPartsAreRecognised(t *testing.T) {
	const length, least = 12, 5
	for name, samples := range notes {
		for _, s := range samples {
			runes := []rune(s)
			for at := 0; at+length <= len(runes); at++ {
				part := string(runes[at : at+length])
				if len(part)-length < 2*least { // characters that are not ASCII have three bytes
					continue
				}
				got, err := text.Decode(encode(t, name, part), "")
				if err == nil && got.String() != part {
					t.Errorf("%q in %s was taken for %s: %q", part, name, got.Encoding(), got.String())
				}
			}
		}
	}
}

func TestWhatIsNoSupportedTextIsRefused(t *testing.T) {
	for name, data := range foreign {
		for _, s := range []string{data, "# Title\n\n" + data, strings.Repeat(data, 20)} {
			got, err := text.Decode([]byte(s), "")
			var coded interface{ Code() string }
			if !errors.As(err, &coded) || coded.Code() != "unsupported_format" {
				t.Errorf("%s was taken for %s: %q %v", name, got.Encoding(), got.String(), err)
			}
		}
	}
	noise := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		data := make([]byte, 8+noise.IntN(400))
		for i := range data {
			data[i] = byte(noise.Uint32())
		}
		if got, err := text.Decode(data, ""); err == nil {
			t.Errorf("noise % x was taken for %s: %q", data, got.Encoding(), got.String())
		}
	}
}

// In a code with two names for a character the bytes would not stay; no other encoding is taken in its place.
func TestTextThatWouldChangeIsRefused(t *testing.T) {
	for name, data := range map[string]string{
		"NEC's ∪ in Shift_JIS":       string(encode(t, text.ShiftJIS, "集合の和は A ")) + "\x87\x9b B と書く。\n",
		"cut character in Shift_JIS": string(encode(t, text.ShiftJIS, "今日は微分積分の基本定理を勉強しました。"))[:39],
		"cut character in GB18030":   string(encode(t, text.GB18030, "今天学习了微积分的基本定理，明天要复习极限。"))[:43],
		"UTF-16 with half a pair":    string(encode(t, text.UTF16LE, "今天学习了微积分的基本定理。")) + "\x00\xd8a\x00",
	} {
		if got, err := text.Decode([]byte(data), ""); err == nil {
			t.Errorf("%s was taken for %s: %q", name, got.Encoding(), got.String())
		}
	}
}

func TestMarks(t *testing.T) {
	for name, mark := range map[string]string{text.UTF8: "\xef\xbb\xbf", text.UTF16LE: "\xff\xfe", text.UTF16BE: "\xfe\xff"} {
		body := []byte("素数 x\r\n")
		if c := codecs[name]; c != nil {
			var err error
			if body, err = c.NewEncoder().Bytes(body); err != nil {
				t.Fatal(err)
			}
		}
		data := append([]byte(mark), body...)
		got, err := text.Decode(data, "")
		if err != nil || !got.BOM() || got.Encoding() != name || got.String() != "素数 x\r\n" {
			t.Errorf("%s: %s %v %q %v", name, got.Encoding(), got.BOM(), got.String(), err)
		}
		if back, err := got.Encode(got.String()); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%s: %x %v, want %x", name, back, err, data)
		}
		if got, err := text.Decode(data, name); err != nil || !got.BOM() {
			t.Errorf("%s declared: %v %v", name, got.BOM(), err)
		}
	}
}

// Of several codes of a character the one is written that the programs of the encoding's home write and read.
func TestUsualCodes(t *testing.T) {
	for _, c := range []struct{ encoding, text, data string }{
		{text.Big5, "包", "\xa5\x5d"}, {text.Big5, "港", "\xb4\xe4"}, {text.Big5, "煮", "\xb5\x4e"}, {text.Big5, "十", "\xa4\x51"}, {text.Big5, "〃", "\xa1\xb2"},
		{text.ShiftJIS, "伹", "\xfa\x6d"}, {text.ShiftJIS, "髙", "\xfb\xfc"}, {text.ShiftJIS, "∪", "\x81\xbe"}, {text.ShiftJIS, "①", "\x87\x40"},
		{text.EUCKR, "똠", "\x8c\x63"}, {text.GB18030, "包", "\xb0\xfc"}, {text.GB18030, "😀", "\x94\x39\xfc\x36"},
	} {
		got, err := text.Decode([]byte(c.data), c.encoding)
		if err != nil || got.String() != c.text {
			t.Errorf("% x in %s: %q %v", c.data, c.encoding, got.String(), err)
			continue
		}
		if data, err := got.Encode("a" + c.text + c.text + "b"); err != nil || string(data) != "a"+c.data+c.data+"b" {
			t.Errorf("%s in %s: % x %v", c.text, c.encoding, data, err)
		}
	}
	const menu = "# 菜單\n\n- 肉包\n- 港式煮麵\n- 晴天的十樣菜\n"
	got, err := text.Decode(nil, text.Big5)
	if err != nil {
		t.Fatal(err)
	}
	data, err := got.Encode(menu)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := text.Decode(data, ""); err != nil || got.Encoding() != text.Big5 || got.String() != menu {
		t.Errorf("%s %q %v", got.Encoding(), got.String(), err)
	}
}

func TestDeclaredEncoding(t *testing.T) {
	for _, c := range []struct{ declared, data string }{{"latin-9", "x"}, {"utf-8", "\xff"}, {"utf-8", "a\x00"}, {"shift_jis", "\xff\xff"}, {"utf-16le", "abc"}} {
		if _, err := text.Decode([]byte(c.data), c.declared); err == nil {
			t.Errorf("%q was taken as %s", c.data, c.declared)
		}
	}
	short := encode(t, text.EUCKR, "값") // too short to be recognised
	if got, err := text.Decode(short, "EUC-KR"); err != nil || got.String() != "값" || got.Encoding() != text.EUCKR {
		t.Errorf("declared EUC-KR: %q %v", got.String(), err)
	}
	if got, err := text.Decode([]byte("a\ufffdb"), ""); err != nil || got.String() != "a\ufffdb" {
		t.Errorf("a replacement character that stands in the file: %q %v", got.String(), err)
	}
	if got, err := text.Decode(encode(t, text.UTF16LE, "a \ufffd b\n"), ""); err != nil || got.Encoding() != text.UTF16LE {
		t.Errorf("the same in UTF-16: %q %v", got.String(), err)
	}
	if got, err := text.Decode(nil, ""); err != nil || got.String() != "" || got.Encoding() != text.UTF8 {
		t.Errorf("nothing: %q %v", got.String(), err)
	}
}

func TestIsText(t *testing.T) {
	for s, want := range map[string]bool{"": true, "a\r\n": true, "\xef\xbb\xbf素数": true, "a\x00": false, "\xd6\xd0": false, "a\x00b\x00": false} {
		if got := text.IsText([]byte(s)); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestEncodeNamesWhatCannotBeWritten(t *testing.T) {
	data, err := codecs[text.EUCKR].NewEncoder().String(notes[text.EUCKR][0])
	if err != nil {
		t.Fatal(err)
	}
	got, err := text.Decode([]byte(data), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = got.Encode("한 줄\n€ 😀\n")
	if err == nil || err.Error() != `the character '😀' in line 2 cannot be written in euc-kr, the encoding of the file; convert the file to UTF-8 first` &&
		err.Error() != `the character '€' in line 2 cannot be written in euc-kr, the encoding of the file; convert the file to UTF-8 first` {
		t.Errorf("error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for name, samples := range notes {
		for _, s := range samples {
			f.Add(encode(f, name, s))
		}
	}
	for _, s := range foreign {
		f.Add([]byte(s))
	}
	for _, s := range wideOnly {
		f.Add(encode(f, text.UTF16LE, s))
	}
	f.Add([]byte("\xff\xfea\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := text.Decode(data, "")
		if err != nil {
			return
		}
		if back, err := got.Encode(got.String()); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%x in %s came back as %x: %v", data, got.Encoding(), back, err)
		}
	})
}
