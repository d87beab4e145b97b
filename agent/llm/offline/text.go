package offline

import (
	"fmt"
	"strings"

	"github.com/repa-app/repa/agent/llm"
)

// in chooses the wording in the language of the question.
func (q question) in(english, chinese string) string {
	if q.chinese {
		return chinese
	}
	return english
}

// say makes the message of an answer: the body, and what every answer says about who answers.
func say(q question, body string) []llm.Block {
	attached := ""
	if q.attached {
		attached = q.in("The attached text was not searched, only the files of this space.", "附加的文本没有被查找，只查找了这个空间里的文件。")
	}
	text := join(body, attached,
		q.in("I am the built-in offline model, not a language model: I find and quote passages of your files and explain nothing myself.",
			"我是内置的离线模型，不是语言模型：我只查找并引用你文件里的原文，自己不作解释。")+"\n"+
			q.in("To connect a model: `repa run --model openai/NAME`, `anthropic/NAME` or `google/NAME` with the key in OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or `ollama/NAME` for a local one.",
				"连接模型：`repa run --model openai/NAME`、`anthropic/NAME` 或 `google/NAME`，密钥放在 OPENAI_API_KEY、ANTHROPIC_API_KEY 或 GEMINI_API_KEY 里；本地模型用 `ollama/NAME`。"))
	return []llm.Block{{Type: llm.BlockText, Text: text}}
}

func noWords(q question) string {
	return q.in("The question has no words to search for. Ask with words that your notes use.", "这个问题里没有可以查找的词。请用你笔记里的词来提问。")
}

func noSearch(q question) string {
	return q.in("This run has no search tool, so I cannot look into your files. Allow the tool `search`, or connect a language model.",
		"这次运行没有 `search` 工具，我无法查看你的文件。请允许使用 `search`，或者连接一个语言模型。")
}

func found(q question, n int) string {
	if n == 1 {
		return q.in("The passage of your files that fits best:", "你的文件里最相关的一段原文：")
	}
	return q.in("The passages of your files that fit best, the best first:", "你的文件里最相关的原文，最相关的在前：")
}

func unmentioned(q question, words []string) string {
	return fmt.Sprintf(q.in("Not mentioned there: %s.", "其中没有提到：%s。"), strings.Join(words, q.in(", ", "、")))
}

func nothing(q question) string {
	if len(q.words) == 0 && !q.quiz {
		return noWords(q)
	}
	if len(q.words) == 0 {
		return q.in("I found nothing to quote in the text files of this space. Add a note or a text to this folder and ask again.",
			"这个空间的文本文件里没有可以引用的内容。请先在这个文件夹里添加笔记或资料，再来提问。")
	}
	return fmt.Sprintf(q.in("I found nothing in the text files of this space. I looked for: %s. Try other words, such as those your notes use, or add a note or a text about it to this folder and ask again.",
		"在这个空间的文本文件里没有找到相关内容。查找的词：%s。可以换一种说法，例如用你笔记里的词；也可以先在这个文件夹里添加相关的笔记或资料，再来提问。"),
		strings.Join(q.words, q.in(", ", "、")))
}

func nothingReadable(q question) string {
	return q.in("I found lines that fit, but could not show the passages around them.", "找到了相关的行，但没能读出它们所在的段落。")
}

// failures tell in full what the tools could not do.
func failures(q question, searches, reads []result) (out []string) {
	for _, r := range searches {
		if r.failed {
			out = append(out, q.in("The search did not work: ", "查找没有成功：")+r.text+"\n"+
				q.in("Ask again; if it stays so, check that the folder can be read.", "请再问一次；如果还是这样，请检查这个文件夹是否可以读取。"))
		}
	}
	for _, r := range reads {
		if r.failed {
			out = append(out, fmt.Sprintf(q.in("%s could not be read, so it is not quoted: %s", "%s 没能读取，所以没有引用：%s"), r.path, r.text))
		}
	}
	return out
}

func introduce(q question, n int) string {
	intro := q.in("Fill in the blanks; the sentences are from your files, the answers at the end.", "填空题：句子都出自你的文件，答案在最后。")
	if n < minClozes {
		intro += " " + q.in("I found no more sentences that make good questions.", "没有找到更多适合出题的句子。")
	}
	return intro
}

func noSentence(q question) string {
	return q.in("I found text, but no sentence that makes a good question. Name a topic, or add notes in full sentences.",
		"找到了文本，但没有适合出题的句子。请说出一个主题，或者用完整的句子写笔记。")
}
