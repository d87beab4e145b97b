package frames

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// This file is inside the package because a player that matches too much can only be caught at its matching.

func parsed(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestMatching(t *testing.T) {
	for _, c := range []struct {
		want, got string
		fits      bool
	}{
		{`1`, `1`, true}, {`1`, `2`, false}, {`null`, `null`, true}, {`null`, `0`, false}, {`"$any"`, `null`, true},
		{`{"a":"$any"}`, `{}`, false}, {`{"a":1}`, `{"a":1,"b":2}`, false}, {`{"a":1,"...":"$any"}`, `{"a":1,"b":2}`, true}, {`{"...":"$any"}`, `[]`, false},
		{`[1,2]`, `[1,2]`, true}, {`[1,2]`, `[2,1]`, false}, {`[1]`, `[1,2]`, false}, {`[]`, `{}`, false},
		{`{"$contains":[2,1]}`, `[1,2,3]`, true}, {`{"$contains":[1,1]}`, `[1,2]`, false}, {`{"$contains":[]}`, `{}`, false},
		{`["$x","$x"]`, `[1,1]`, true}, {`["$x","$x"]`, `[1,2]`, false}, {`["$x",{"$contains":["$x"]}]`, `[1,[2,1]]`, true}, {`["$x",{"$contains":["$x"]}]`, `[1,[2]]`, false},
		{`"$known"`, `"k"`, true}, {`"$known"`, `"l"`, false}, {`"a/$known"`, `"a/k"`, true}, {`"a/$known"`, `"a/l"`, false}, {`"a/$unknown"`, `"a/x"`, false},
	} {
		before := names{"$known": "k"}
		after, err := before.match(parsed(t, c.want), parsed(t, c.got))
		if (err == nil) != c.fits {
			t.Errorf("%s against %s: %v", c.want, c.got, err)
		}
		if len(before) != 1 {
			t.Errorf("%s against %s changed the names: %v", c.want, c.got, before)
		}
		if err == nil && after["$known"] != "k" {
			t.Errorf("%s against %s forgot a name", c.want, c.got)
		}
	}
}

func update(cursor, previous string, changes ...string) string {
	list := ""
	for i, change := range changes {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf(`{"type":%q}`, change)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"subscription.update","params":{"id":"w","delivery":{"type":"changes","previousCursor":%q,"cursor":%q,"changes":[%s]}}}`, previous, cursor, list)
}

func snapshotUpdate(cursor string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"subscription.update","params":{"id":"w","delivery":{"type":"snapshot","cursor":%q,"snapshot":{}}}}`, cursor)
}

// script plays expected steps against frames that came, without a backend.
func script(t *testing.T, got []string, steps ...step) error {
	t.Helper()
	in := &inbox{done: make(chan struct{}), end: errors.New("that was all"), positions: map[string]*position{}, started: map[string]string{}}
	close(in.done)
	for _, text := range got {
		in.frames = append(in.frames, &received{value: parsed(t, text)})
	}
	p := &player{t: t, names: names{}, conns: map[string]*inbox{"a": in}, methods: map[string]string{}}
	for i, s := range steps {
		s.Dir, s.Conn = "<", "a"
		if err := p.step(s); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return p.checkAll()
}

func TestSteps(t *testing.T) {
	expect := func(text string) step { return step{Frame: parsed(t, text)} }
	strict := func(s step) step { s.Strict = true; return s }
	anyOrder := func(s step) step { s.AnyOrder = true; return s }
	exact := func(s step) step { s.Exact = true; return s }
	changes := func(list ...string) step { return expect(update("$any", "$any", list...)) }
	const answer1, answer2 = `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":2,"result":null}`
	for name, c := range map[string]struct {
		got   []string
		steps []step
		fits  bool
	}{
		"answers in any order":             {[]string{answer2, answer1}, []step{expect(answer1), expect(answer2)}, true},
		"strict answer out of turn":        {[]string{answer2, answer1}, []step{strict(expect(answer1))}, false},
		"strict answer in turn":            {[]string{answer1, answer2}, []step{strict(expect(answer1)), strict(expect(answer2))}, true},
		"missing answer":                   {[]string{answer1}, []step{expect(answer2)}, false},
		"one answer serves once":           {[]string{answer1}, []step{expect(answer1), expect(answer1)}, false},
		"changes split over deliveries":    {[]string{update("b", "a", "x"), update("c", "b", "y", "z")}, []step{changes("x", "y"), changes("z")}, true},
		"changes merged":                   {[]string{update("b", "a", "x", "y", "z")}, []step{changes("x"), changes("y"), changes("z")}, true},
		"others between":                   {[]string{update("b", "a", "o", "x", "o", "y")}, []step{changes("x", "y")}, true},
		"wrong order":                      {[]string{update("b", "a", "y", "x")}, []step{changes("x", "y")}, false},
		"any order":                        {[]string{update("b", "a", "y", "x")}, []step{anyOrder(changes("x", "y"))}, true},
		"any order, one missing":           {[]string{update("b", "a", "y", "y")}, []step{anyOrder(changes("x", "y"))}, false},
		"steps go forward":                 {[]string{update("b", "a", "y", "x")}, []step{changes("x"), changes("y")}, false},
		"broken chain":                     {[]string{update("b", "a", "x"), update("d", "c", "y")}, []step{changes("x", "y")}, false},
		"chain from a snapshot":            {[]string{snapshotUpdate("a"), update("b", "a", "x")}, []step{expect(snapshotUpdate("$c")), expect(update("$any", "$c", "x"))}, true},
		"broken chain from a snapshot":     {[]string{snapshotUpdate("a"), update("c", "b", "x")}, []step{expect(snapshotUpdate("$c")), changes("x")}, false},
		"snapshot after other changes":     {[]string{update("b", "a", "x"), snapshotUpdate("b")}, []step{expect(snapshotUpdate("b"))}, true},
		"exact":                            {[]string{update("b", "a", "x")}, []step{exact(changes("x"))}, true},
		"exact with one more":              {[]string{update("b", "a", "x", "y")}, []step{exact(changes("x"))}, false},
		"exact and empty":                  {[]string{update("a", "a")}, []step{exact(changes())}, true},
		"strict update before the answer":  {[]string{update("b", "a", "x"), answer1}, []step{strict(changes("x")), strict(expect(answer1))}, true},
		"strict update behind the answer":  {[]string{answer1, update("b", "a", "x")}, []step{strict(changes("x"))}, false},
		"never":                            {[]string{update("b", "a", "x", "bad")}, []step{{Frame: changes("x").Frame, Never: []string{"bad"}}}, false},
		"never came":                       {[]string{update("b", "a", "x")}, []step{{Frame: changes("x").Frame, Never: []string{"bad"}}}, true},
		"batch in order":                   {[]string{`[` + answer1 + `,` + answer2 + `]`}, []step{expect(`[` + answer1 + `,` + answer2 + `]`)}, true},
		"batch in another order":           {[]string{`[` + answer2 + `,` + answer1 + `]`}, []step{expect(`[` + answer1 + `,` + answer2 + `]`)}, false},
		"batch in another order, allowed":  {[]string{`[` + answer2 + `,` + answer1 + `]`}, []step{anyOrder(expect(`[` + answer1 + `,` + answer2 + `]`))}, true},
		"captured names hold across steps": {[]string{answer1, `{"jsonrpc":"2.0","id":2,"result":5}`}, []step{expect(`{"jsonrpc":"2.0","id":1,"result":"$r"}`), expect(`{"jsonrpc":"2.0","id":2,"result":"$r"}`)}, false},
	} {
		if err := script(t, c.got, c.steps...); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
