package text

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A reading tells how likely it is that a text in one encoding goes on with the bytes at the beginning of data: how many bytes its next character
// takes, and the logarithm of the probability that just this character stands there. The number is 0 when no character of the encoding begins so.
//
// Each reading gives half of its probability to ASCII, which all deal out in the same way; what remains is dealt out to classes of
// characters, within a class evenly. The reading under which all bytes together are likeliest is the encoding. The parts of the classes are those of
// common prose, rounded: only their orders of magnitude matter.
type reading func(data []byte) (n int, logP float64)

// share is the logarithm of the probability of one of count characters that have a part of all that is not ASCII.
func share(part float64, count int) float64 { return math.Log(part / 2 / float64(count)) }

var (
	blankLogP = share(0.2, 2)
	smallLogP = share(0.5, 26)
	asciiLogP = share(0.3, 68)
	// controlLogP is that of a control character that is no white space, such as the end-of-file mark of DOS: rare, but not excluded.
	controlLogP = math.Log(1e-5)
	// noneLogP is that of a byte which begins no character, where a reading is only compared and not used.
	noneLogP = math.Log(1e-7)
)

// single is the part of each reading below 0x80. NUL stands in no text.
func single(b byte) (int, float64) {
	switch {
	case b == 0:
		return 0, 0
	case b == ' ' || b == '\n':
		return 1, blankLogP
	case b >= 'a' && b <= 'z':
		return 1, smallLogP
	case b < ' ' && b != '\t' && b != '\r' && b != '\f', b == 0x7f:
		return 1, controlLogP
	}
	return 1, asciiLogP
}

// double is a reading of an encoding with characters of one or two bytes, whose rarer characters are in classes by code.
func double(name string, frequentPart float64, class func(lead, trail byte) float64) reading {
	return func(data []byte) (int, float64) {
		if data[0] < 0x80 {
			return single(data[0])
		}
		if len(data) < 2 {
			return 0, 0
		}
		codes := frequentCodes()[name]
		if codes[uint16(data[0])<<8|uint16(data[1])] {
			return 2, share(frequentPart, len(codes))
		}
		logP := class(data[0], data[1])
		if logP == 0 {
			return 0, 0
		}
		return 2, logP
	}
}

// readings of the encodings that are recognised. Level 1 and level 2 are the national standards' sets of common and of rare characters.
var readings = map[string]reading{
	UTF16LE: wide(func(data []byte) rune { return rune(data[0]) | rune(data[1])<<8 }),
	UTF16BE: wide(func(data []byte) rune { return rune(data[0])<<8 | rune(data[1]) }),
	GB18030: gb18030,
	Big5: double(Big5, 0.58, func(lead, trail byte) float64 {
		switch code := uint16(lead)<<8 | uint16(trail); {
		case lead < 0x81 || lead == 0xff || trail < 0x40 || trail > 0x7e && trail < 0xa1 || trail == 0xff:
			return 0
		case code >= 0xa140 && code <= 0xa3bf:
			return share(0.02, 400)
		case code >= 0xa440 && code <= 0xc67e: // level 1
			return share(0.37, 5000)
		case code >= 0xc940 && code <= 0xf9d5: // level 2
			return share(0.02, 7650)
		}
		return share(0.001, 5000)
	}),
	ShiftJIS: shiftJIS,
	EUCKR: double(EUCKR, 0.75, func(lead, trail byte) float64 {
		switch {
		case lead < 0x81 || lead == 0xff || trail < 0x41 || trail == 0xff:
			return 0
		case trail < 0xa1 || lead < 0xa1: // the syllables that Windows added
			return share(0.005, 8822)
		case lead <= 0xac:
			return share(0.01, 900)
		case lead >= 0xb0 && lead <= 0xc8: // syllables
			return share(0.22, 2170)
		case lead >= 0xca && lead <= 0xfd: // Chinese characters
			return share(0.015, 4888)
		}
		return share(0.001, 500)
	}),
}

// gb18030 has the characters of GB 2312 where both bytes are above 0xa0, those of GBK around them, and four bytes for all others.
func gb18030(data []byte) (int, float64) {
	if len(data) >= 4 && data[0] > 0x80 && data[1] >= '0' && data[1] <= '9' {
		return 4, share(0.002, 1_000_000)
	}
	return gbk(data)
}

var gbk = double(GB18030, 0.58, func(lead, trail byte) float64 {
	switch {
	case lead < 0x81 || lead == 0xff || trail < 0x40 || trail == 0x7f || trail == 0xff:
		return 0
	case frequentCodes()[traditional][uint16(lead)<<8|uint16(trail)]:
		return share(0.03, 500)
	case trail < 0xa1 || lead < 0xa1 || lead > 0xf7:
		return share(0.008, 15_000)
	case lead <= 0xa9:
		return share(0.02, 700)
	case lead >= 0xb0 && lead <= 0xd7: // level 1
		return share(0.37, 3400)
	case lead >= 0xd8: // level 2
		return share(0.02, 3000)
	}
	return share(0.001, 500)
})

// shiftJIS has katakana of one byte besides the characters of two.
func shiftJIS(data []byte) (int, float64) {
	if data[0] > 0xa0 && data[0] < 0xe0 {
		return 1, share(0.01, 63)
	}
	return shiftedJIS(data)
}

var shiftedJIS = double(ShiftJIS, 0.75, func(lead, trail byte) float64 {
	switch code := uint16(lead)<<8 | uint16(trail); {
	case lead < 0x81 || lead > 0xfc || trail < 0x40 || trail == 0x7f || trail > 0xfc:
		return 0
	case code < 0x8897:
		return share(0.04, 400)
	case code >= 0x889f && code <= 0x9872: // level 1
		return share(0.2, 2900)
	case code >= 0x989f && code <= 0xeaa4: // level 2
		return share(0.01, 3390)
	}
	return share(0.002, 800)
})

// wide is a reading of UTF-16.
func wide(unit func(data []byte) rune) reading {
	return func(data []byte) (int, float64) {
		if len(data) < 2 {
			return 0, 0
		}
		r := unit(data)
		if utf16.IsSurrogate(r) {
			if len(data) < 4 || utf16.DecodeRune(r, unit(data[2:])) == unicode.ReplacementChar {
				return 0, 0
			}
			return 4, share(0.01, 1_000_000)
		}
		if r < 0x80 {
			n, logP := single(byte(r))
			return 2 * n, logP
		}
		return 2, scriptLogP(r)
	}
}

// scriptLogP is the probability of a character of any script; that of one which no text has is next to nothing.
func scriptLogP(r rune) float64 {
	switch {
	case frequentRunes()[r]:
		return share(0.45, 1500)
	case !unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r):
		return noneLogP * 2
	case r < 0x0500: // Latin, Greek, Cyrillic
		return share(0.08, 1100)
	case r >= 0x2000 && r < 0x2300, r >= 0x3000 && r < 0x3100, r >= 0xff00 && r < 0xff61: // punctuation, kana, full-width forms
		return share(0.1, 1200)
	case r >= 0x4e00 && r < 0x9fa6:
		return share(0.3, 20_000)
	case r >= 0xac00 && r < 0xd7a4:
		return share(0.06, 11_172)
	}
	return share(0.005, 30_000)
}

// others are readings as what is not recognised. Bytes that are likelier one of these are refused: taken for a text they would show as nonsense.
var others = []reading{
	letters(func(b byte) float64 { // noise, or any encoding with one byte for a character
		return share(1, 128)
	}),
	func(data []byte) (int, float64) { // what is no text, where many bytes are zero
		if data[0] == 0 {
			return 1, math.Log(0.25)
		}
		return 1, math.Log(0.75 / 255)
	},
	letters(func(b byte) float64 { // the letters of ISO 8859 and Windows encodings, small ones at the end
		switch {
		case b >= 0xe0:
			return share(0.85, 32)
		case b >= 0xc0:
			return share(0.1, 32)
		}
		return share(0.05, 64)
	}),
	letters(func(b byte) float64 { // KOI8, where small letters are before the capitals
		switch {
		case b >= 0xe0:
			return share(0.1, 32)
		case b >= 0xc0:
			return share(0.85, 32)
		}
		return share(0.05, 64)
	}),
	func(data []byte) (int, float64) {
		switch {
		case data[0] < 0x80:
			return letter(data[0])
		case data[0] == 0x8e && len(data) > 1: // katakana of half width
			return 2, share(0.01, 63)
		case data[0] == 0x8f && len(data) > 2: // rare characters
			return 3, share(0.002, 6000)
		}
		if n, logP := japaneseEUC(data); n > 0 {
			return n, logP
		}
		return 1, noneLogP
	},
	func(data []byte) (int, float64) { // UTF-8 with damage
		if data[0] < 0x80 {
			return letter(data[0])
		}
		if r, n := utf8.DecodeRune(data); n > 1 {
			return n, scriptLogP(r)
		}
		return 1, noneLogP
	},
}

// japaneseEUC is a reading of the characters of two bytes in EUC-JP.
var japaneseEUC = double(eucJP, 0.75, func(lead, trail byte) float64 {
	switch {
	case lead < 0xa1 || trail < 0xa1 || lead == 0xff || trail == 0xff:
		return 0
	case lead < 0xa9:
		return share(0.04, 500)
	case lead >= 0xb0 && lead <= 0xcf: // level 1
		return share(0.2, 2900)
	}
	return share(0.01, 3390)
})

// letters is a reading with one byte for each character.
func letters(high func(b byte) float64) reading {
	return func(data []byte) (int, float64) {
		if data[0] < 0x80 {
			return letter(data[0])
		}
		return 1, high(data[0])
	}
}

// letter is the part below 0x80 of a reading that is not used: as noise it may have any control character.
func letter(b byte) (int, float64) {
	if n, logP := single(b); n > 0 && logP != controlLogP {
		return n, logP
	}
	return 1, share(1, 128)
}

// maxJudged bounds the bytes that an encoding is recognised by: with some thousand characters nothing is in doubt.
const maxJudged = 64 << 10

// unmarked is by how much UTF-16 must be likelier than what is not recognised: without a byte order mark it is rare, and any even number of bytes is
// close to some text in it.
const unmarked = 3

// likeliest lists the encodings that bytes are likelier to be in than in one that is not recognised, the likeliest first. They are judged by the bytes
// around the first one that is not plain ASCII.
func likeliest(data []byte) []string {
	start := slices.IndexFunc(data, func(b byte) bool { return b >= 0x80 || b == 0 })
	if start < 0 {
		return nil
	}
	data = data[max(0, start-maxJudged/2)&^1:] // UTF-16 has its characters at even places
	limit := math.Inf(-1)
	for _, r := range others {
		limit = max(limit, r.logP(data))
	}
	type found struct {
		name string
		logP float64
	}
	var out []found
	for name, r := range readings {
		least := limit
		if name == UTF16LE || name == UTF16BE {
			least += unmarked
		}
		if logP := r.logP(data); logP > least {
			out = append(out, found{name, logP})
		}
	}
	slices.SortFunc(out, func(a, b found) int {
		if a.logP != b.logP {
			if a.logP > b.logP {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	names := make([]string, len(out))
	for i, f := range out {
		names[i] = f.name
	}
	return names
}

// logP is the probability of the judged part of data; of nothing else when it cannot be read so.
func (r reading) logP(data []byte) (sum float64) {
	judged := min(len(data), maxJudged)
	for at := 0; at < judged; {
		n, logP := r(data[at:])
		if n == 0 {
			return math.Inf(-1)
		}
		at, sum = at+n, sum+logP
	}
	return sum
}
