package text

import (
	"sync"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
)

// frequent are the most frequent characters of texts in each legacy encoding: in running text they make up more than half of all that is not ASCII,
// while the same bytes read in another encoding meet them by chance only.
var frequent = map[string]string{
	GB18030:  "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天而能好都然没日于起还发成事只作当想看文无开手用主行方又如前所本见经头面公同三已老从动两长知样现分将外但身些与高意进把法此实回二理点月明其种全工己话者向情部正名定问力机给等几很业最间新什位因重被第相次使教再平真世气信关并内加化由却入先五太水体别处总才书比性通目数件表应路期常提感何更反合放做系计果及解各任至记边共接它许特觉题建度统色字请认算论义科元术结功指思非每管资带条变联言该领传保达办必步完深区求品转量空技程语基式写识极取设始史片容研找友议形早音际则首单据导失专若读观究包组造视式图例值率单词句译音符号线角形圆积函证答案错练测验考试卷班师章页节课笔录历史朝代战争家政经济市场货币价格款贸易产业农村城河山海洋气候温热光电磁波速质酸碱盐氧氢碳属细胞遗传基因蛋植类血液脑网络码编存链表树背诗文词语英汉字写解释概括总统均差方程线复习预备查找排列组随机概率极限导微，。、；：？！“”‘’（）《》—…·",
	Big5:     "的一是不了人我在有他這中大來上國個到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可里後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手用主行方又如前所本見經頭面公同三已老從動兩長知樣現分將外但身些與高意進把法此實回二理點月明其種全工己話者向情部正名定問力機給等幾很業最間新什位因重被第相次使教再平真世氣信關並內加化由卻入先五太水體別處總才書比性通目數件表應路期常提感何更反合放做系計果及解各任至記邊共接它許特覺題建度統色字請認算論義科元術結功指思非每管資帶條變聯言該領傳保達辦必步完深區求品轉量空技程語基式寫識極取設始史片容研找友議形早音際則首單據導失專若讀觀究包組造視式圖例值率單詞句譯音符號線角形圓積函證答案錯練測驗考試卷班師章頁節課筆錄歷史朝代戰爭家政經濟市場貨幣價格款貿易產業農村城河山海洋氣候溫熱光電磁波速質酸鹼鹽氧氫碳屬細胞遺傳基因蛋植類血液腦網路碼編存鏈表樹背詩文詞語英漢字寫解釋概括總統均差方程線複習預備查找排列組隨機概率極限導微，。、；：？！「」『』（）《》—…·",
	ShiftJIS: "のにはをたがでてとしれさあいうるもなかりらこきくけすせそつちよまやみめえおんっょゃゅわほへひふむねぬゆどだばびぶべぼじずぜぞげごがぎぐアイウエオカキクケコサシスセソタチツテトナニネノハフヘマミムメモラリルレロンーッャュョドデバプスグ日一国人年大本中会事行分出者上生合学自社部法同長間方場所要新見時下用問題内的前後理体語今小数手意定実性言目明、。・「」（）",
	EUCKR:    "이다는을의에가하고지로한를은도어사기서리자시아나그대일인라과들보있해여정수것부전게으장상주소우적동학생성원국조유연구스안만비와제면신했경선할조위문세음공되었러니까요용중간모무발방말오실관계점교재력미치화물습내명식개결각진심회마분때한며또저더같알없않겠습네데든라려면서，。？！",
}

// Further keys of frequentCodes: traditional Chinese characters in GB18030, and an encoding that is only told apart.
const (
	traditional = "traditional"
	eucJP       = "euc-jp"
)

// frequentCodes are the two bytes of each frequent character in its encoding.
var frequentCodes = sync.OnceValue(func() map[string]map[uint16]bool {
	out := map[string]map[uint16]bool{}
	add := func(key string, in encoding.Encoding, chars string) {
		out[key] = map[uint16]bool{}
		for _, r := range chars {
			if code, err := in.NewEncoder().String(string(r)); err == nil && len(code) == 2 {
				out[key][uint16(code[0])<<8|uint16(code[1])] = true
			}
		}
	}
	for name, chars := range frequent {
		add(name, encodings[name], chars)
	}
	add(traditional, encodings[GB18030], frequent[Big5])
	add(eucJP, japanese.EUCJP, frequent[ShiftJIS])
	return out
})

// frequentRunes are the frequent characters of all encodings.
var frequentRunes = sync.OnceValue(func() map[rune]bool {
	out := map[rune]bool{}
	for _, chars := range frequent {
		for _, r := range chars {
			out[r] = true
		}
	}
	return out
})
