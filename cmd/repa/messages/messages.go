// Package messages is the message catalogue of the command line: every text that people see, in English and in Simplified
// Chinese. A text is a variable of type Message, so that a missing one does not compile; a test proves that both languages are
// complete and take the same arguments. What a backend or a provider says is passed on as it came.
package messages

import (
	"fmt"
	"strings"
)

// Message is one text in both languages, a format of package fmt.
type Message struct{ En, Zh string }

// Language is the language of the interface.
type Language uint8

// The languages.
const (
	English Language = iota
	Chinese
)

// Choose takes the language from the environment: REPA_LANG, then the POSIX order LC_ALL, LC_MESSAGES, LANG. The first that is
// set decides; anything but Chinese is English.
func Choose(getenv func(string) string) Language {
	for _, name := range []string{"REPA_LANG", "LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := getenv(name); v != "" {
			if strings.HasPrefix(strings.ToLower(v), "zh") {
				return Chinese
			}
			return English
		}
	}
	return English
}

// Text formats a message.
func (l Language) Text(m Message, args ...any) string {
	format := m.En
	if l == Chinese {
		format = m.Zh
	}
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}
