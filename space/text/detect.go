package text

import (
	"strings"
	"unicode"
)

// wide recognises UTF-16 without a byte order mark: in text a good part of the characters are ASCII, spaces and line ends at the least, whose
// high byte is zero, and zeros stand nowhere else.
func wide(data []byte) string {
	if len(data) < 4 || len(data)%2 != 0 {
		return ""
	}
	var zeros [2]int
	head := data[:min(len(data), 8<<10)]
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	enough := len(head) / 2 / 50 // one character in fifty
	switch {
	case zeros[1] > enough && zeros[0] == 0:
		return UTF16LE
	case zeros[0] > enough && zeros[1] == 0:
		return UTF16BE
	}
	return ""
}

// common are the most frequent characters of texts in each legacy encoding: in running text they make up a third to a half of all that is not
// ASCII, while the same bytes read in another encoding meet them by chance only.
var common = map[string]string{
	GB18030:  "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天而能好都然没日于起还发成事只作当想看文无开手用主行方又如前所本见经头面公同三已老从动两长知样现分将外但身些与高意进把法此实回二理点月明其种全工己话者向情部正名定问力机给等几很业最间新什位因重被第相次使教再平真世气信关并内加化由却入先五太水体别处总才书比性通目数件表应路期常提感何更反合放做系计果及解各任至记边共接它许特觉题建度统色字请认算论义科元术结功指思非每管资带条变联言该领传保达办必步完深区求品转量空技程语基式写识极取设始史片容研找友议形早音际则首单据导失专若读观究包组造视，。、；：？！“”（）《》",
	Big5:     "的一是不了人我在有他這中大來上國個到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可里後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手用主行方又如前所本見經頭面公同三已老從動兩長知樣現分將外但身些與高意進把法此實回二理點月明其種全工己話者向情部正名定問力機給等幾很業最間新什位因重被第相次使教再平真世氣信關並內加化由卻入先五太水體別處總才書比性通目數件表應路期常提感何更反合放做系計果及解各任至記邊共接它許特覺題建度統色字請認算論義科元術結功指思非每管資帶條變聯言該領傳保達辦必步完深區求品轉量空技程語基式寫識極取設始史片容研找友議形早音際則首單據導失專若讀觀究包組造視，。、；：？！「」（）《》",
	ShiftJIS: "のにはをたがでてとしれさあいうるもなかりらこきくけすせそつちよまやみめえおんっょゃゅわほへひふむねぬゆどだばびぶべぼじずぜぞげごがぎぐアイウエオカキクケコサシスセソタチツテトナニネノハフヘマミムメモラリルレロンーッャュョドデバプスグ日一国人年大本中会事行分出者上生合学自社部法同長間方場所要新見時下用問題内的前後理体語今小数手意定実性言目明、。・「」（）",
	EUCKR:    "이다는을의에가하고지로한를은도어사기서리자시아나그대일인라과들보있해여정수것부전게으장상주소우적동학생성원국조유연구스안만비와제면신했경선할조위문세음공되었러니까요용중간모무발방말오실관계점교재력미치화물습내명식개결각진심회마분때한며또저더같알없않겠습네데든라려면서，。？！",
}

// commonSet is common as sets.
var commonSet = func() map[string]map[rune]bool {
	out := map[string]map[rune]bool{}
	for name, chars := range common {
		out[name] = map[rune]bool{}
		for _, r := range chars {
			out[name][r] = true
		}
	}
	return out
}()

// leastCommon is the part of common characters below which a reading counts as chance.
const leastCommon = 0.08

// likeliest reads bytes in the legacy encoding whose frequent characters they have most of. Of a long text the beginning decides.
func likeliest(data []byte) (Text, bool) {
	best, bestScore := Text{}, leastCommon
	for _, name := range []string{GB18030, Big5, ShiftJIS, EUCKR} {
		t, ok := decodeAs(data, name)
		if !ok {
			continue
		}
		if score := plausibility(t.s, name); score > bestScore {
			best, bestScore = t, score
		}
	}
	return best, best.encoding != ""
}

// plausibility is the part of what is not ASCII that is frequent in texts of an encoding; what no text has counts against it.
func plausibility(s, name string) float64 {
	frequent, all := 0, 0
	for _, r := range s[:min(len(s), 64<<10)] {
		if r < 0x80 {
			if r < ' ' && !strings.ContainsRune("\t\n\r\f", r) {
				return 0
			}
			continue
		}
		all++
		switch {
		case commonSet[name][r]:
			frequent++
		case unicode.Is(unicode.Co, r), unicode.IsControl(r):
			frequent -= 2
		case r >= 0xff61 && r <= 0xff9f: // half-width katakana: single bytes that anything may look like
			frequent--
		}
	}
	if all == 0 {
		return 0
	}
	return float64(frequent) / float64(all)
}
