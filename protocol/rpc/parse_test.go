package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// This file is inside the package because a frame can be parsed without a socket only here.

var seeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":"x","method":"a","params":{}}`, `{"jsonrpc":"2.0","method":"a","params":[1]}`,
	`{"jsonrpc":"2.0","id":null,"method":"a"}`, `{"jsonrpc":"2.0","id":{},"method":"a"}`, `{"jsonrpc":"1.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":1,"method":7}`,
	`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"error":{}}`, `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, `{"jsonrpc":"2.0","result":1}`,
	`[]`, `[{}]`, `[1,{"jsonrpc":"2.0","id":1,"method":"a"}]`, `{`, `"x"`, `null`, ``, ` `, `{} {}`, `[[[[`, `{"a":1,"a":2}`, `{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":{"c":1,"c":1}}}`,
	"\xff", `{"jsonrpc":"2.0","id":1e400,"method":"a"}`, `{"JSONRPC":"2.0","ID":1,"Method":"a"}`, `{"jsonrpc":"2.0","id":1,"method":"\u0061"}`, `{"jsonrpc":"2\u002e0","id":1,"method":"a"}`,
	`{"jsonrpc":"2.0","id":1,"method":"\ud800"}`, "[" + strings.Repeat("1,", 300) + "1]", `{"jsonrpc":"2.0","id":-0,"method":""}`, `{"\u0069d":1,"jsonrpc":"2.0","method":"a"}`,
}

// FuzzParse holds the parser against a slow reference built on encoding/json.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		got, fault := parse(new(jsontext.Decoder), text)
		if !bytes.Equal(before, text) {
			t.Fatal("the frame was changed")
		}
		want, wantNumber := reference(text)
		number := 0
		if fault != nil {
			number = fault.Number
		}
		if number != wantNumber {
			t.Fatalf("%q: error %d, the reference says %d", text, number, wantNumber)
		}
		if len(got.messages) != len(want) {
			t.Fatalf("%q: %d messages, the reference says %d", text, len(got.messages), len(want))
		}
		for i, m := range got.messages {
			if m.form != want[i] {
				t.Fatalf("%q: message %d is %d, the reference says %d", text, i, m.form, want[i])
			}
			if m.form == formCall && !json.Valid(m.id) || m.params != nil && !json.Valid(m.params) {
				t.Fatalf("%q: message %d holds what is not JSON", text, i)
			}
		}
		if fault != nil && !json.Valid(refusal(fault)) {
			t.Fatalf("refusal is not JSON: %s", refusal(fault))
		}
	})
}

// reference decides the same with encoding/json, walking tokens for what that accepts and we do not.
func reference(text []byte) ([]form, int) {
	if !acceptable(text) {
		return nil, protocol.NumberParse
	}
	var list []json.RawMessage
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); trimmed[0] == '[' {
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, protocol.NumberParse
		}
		if len(list) == 0 || len(list) > 256 {
			return nil, protocol.NumberInvalidRequest
		}
	} else {
		list = []json.RawMessage{text}
	}
	var forms []form
	for _, item := range list {
		forms = append(forms, referenceForm(item))
	}
	return forms, 0
}

func referenceForm(item json.RawMessage) form {
	var members map[string]json.RawMessage
	if json.Unmarshal(item, &members) != nil || members == nil {
		return formInvalid
	}
	// Written out differently, "2.0" is still the text, but nobody writes it so; both say it is none.
	if string(members["jsonrpc"]) != `"2.0"` {
		return formInvalid
	}
	id, hasID := members["id"]
	if hasID && (id[0] == '{' || id[0] == '[' || id[0] == 't' || id[0] == 'f') {
		return formInvalid
	}
	method, hasMethod := members["method"]
	if hasMethod && method[0] != '"' {
		return formInvalid
	}
	_, hasResult := members["result"]
	_, hasError := members["error"]
	switch {
	case hasMethod && hasID:
		return formCall
	case hasMethod:
		return formNotification
	case hasID && hasResult != hasError:
		return formAnswer
	}
	return formInvalid
}

// acceptable says whether text is one JSON value without duplicate names, invalid UTF-8 or lone surrogates.
func acceptable(text []byte) bool {
	if !utf8.Valid(text) || !json.Valid(text) || loneSurrogate(text) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return distinct(dec) == nil
}

var errDuplicate = errors.New("duplicate name")

func distinct(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if delim == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			if seen[name.(string)] {
				return errDuplicate
			}
			seen[name.(string)] = true
		}
		if err := distinct(dec); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// loneSurrogate looks for \u escapes that are half of a pair.
func loneSurrogate(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		first := hex4(text[i+1:])
		i += 4
		if first >= 0xdc00 && first <= 0xdfff {
			return true
		}
		if first >= 0xd800 && first <= 0xdbff {
			if i+6 >= len(text) || text[i+1] != '\\' || text[i+2] != 'u' {
				return true
			}
			if second := hex4(text[i+3:]); second < 0xdc00 || second > 0xdfff {
				return true
			}
			i += 6
		}
	}
	return false
}

func hex4(text []byte) (n int) {
	for _, c := range text[:4] {
		n <<= 4
		switch {
		case c >= '0' && c <= '9':
			n |= int(c - '0')
		case c >= 'a' && c <= 'f':
			n |= int(c-'a') + 10
		default:
			n |= int(c-'A') + 10
		}
	}
	return n
}
