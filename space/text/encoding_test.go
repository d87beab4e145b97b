package text_test

import (
	"bytes"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"github.com/repa-app/repa/space/text"
)

// notes are short texts as learners write them.
var notes = map[string][]string{
	text.GB18030: {
		"# 素数\n\n素数是只能被1和它本身整除的自然数。\n- 2, 3, 5, 7\n",
		"今天学习了微积分的基本定理，明天要复习极限。",
		"错题：第三题的符号写反了",
		"TODO: 看完第 4 章 (chapter 4)，做习题。",
		"细胞膜的主要成分是磷脂双分子层。\r\n蛋白质镶嵌其中。\r\n",
	},
	text.Big5: {
		"# 質數\n\n質數是只能被1和它本身整除的自然數。\n- 2, 3, 5, 7\n",
		"今天學習了微積分的基本定理，明天要複習極限。",
		"這是一個關於細胞的筆記，請再讀一次。",
	},
	text.ShiftJIS: {
		"# 素数\n\n素数とは、1とその数自身でしか割り切れない自然数のことです。\n",
		"今日は微分積分の基本定理を勉強しました。明日は極限を復習する。",
		"テスト範囲は第3章から第5章まで。",
	},
	text.EUCKR: {
		"# 소수\n\n소수는 1과 자기 자신으로만 나누어지는 자연수이다.\n",
		"오늘은 미적분의 기본 정리를 공부했다. 내일은 극한을 복습해야 한다.",
		"세포막의 주요 성분은 인지질이다.",
	},
}

var codecs = map[string]encoding.Encoding{
	text.GB18030: simplifiedchinese.GB18030, text.Big5: traditionalchinese.Big5, text.ShiftJIS: japanese.ShiftJIS, text.EUCKR: korean.EUCKR,
	text.UTF16LE: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), text.UTF16BE: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
}

func TestEncodingsAreRecognised(t *testing.T) {
	for name, samples := range notes {
		for _, s := range samples {
			for _, as := range []string{name, text.UTF16LE, text.UTF16BE} {
				data, err := codecs[as].NewEncoder().String(s)
				if err != nil {
					t.Fatalf("%s: %q: %v", as, s, err)
				}
				wide := as != name
				if wide && !bytes.ContainsAny([]byte(s), " \n1") {
					continue // without any ASCII nothing tells
				}
				got, err := text.Decode([]byte(data), "")
				if err != nil || got.Encoding() != as || got.String() != s || got.BOM() {
					t.Errorf("%q in %s was taken for %s: %q %v", s, as, got.Encoding(), got.String(), err)
				}
			}
			got, err := text.Decode([]byte(s), "")
			if err != nil || got.Encoding() != text.UTF8 || got.String() != s {
				t.Errorf("%q in UTF-8: %s %v", s, got.Encoding(), err)
			}
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

func TestNoText(t *testing.T) {
	for name, data := range map[string][]byte{
		"PNG": []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01"), "zeros": make([]byte, 64), "random": {0xff, 0x81, 0x03, 0x9d, 0xc1, 0x80, 0xfe, 0x07},
		"latin-1": []byte("caf\xe9 na\xefve \xfcber"), "NUL": []byte("a\x00b"),
	} {
		if got, err := text.Decode(data, ""); err == nil {
			t.Errorf("%s was taken for %s: %q", name, got.Encoding(), got.String())
		}
	}
	for _, c := range []struct{ declared, data string }{{"latin-9", "x"}, {"utf-8", "\xff"}, {"shift_jis", "\xff\xff"}, {"utf-16le", "abc"}} {
		if _, err := text.Decode([]byte(c.data), c.declared); err == nil {
			t.Errorf("%q was taken as %s", c.data, c.declared)
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
			data, err := codecs[name].NewEncoder().String(s)
			if err != nil {
				f.Fatal(err)
			}
			f.Add([]byte(data))
		}
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
