package frames

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
)

// names holds the values of placeholders of one file.
type names map[string]any

var placeholder = regexp.MustCompile(`\$[A-Za-z][A-Za-z0-9]*`)

const (
	anyValue = "$any"
	open     = "..."
	contains = "$contains"
)

// fill replaces the placeholders of what is sent.
func (n names) fill(value any) (any, error) {
	switch v := value.(type) {
	case string:
		return n.fillText(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = n.fill(v[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for key := range v {
			var err error
			if object[key], err = n.fill(v[key]); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return value, nil
}

func (n names) fillText(text string) (any, error) {
	if value, ok := n[text]; ok {
		return value, nil
	}
	var missing error
	filled := placeholder.ReplaceAllStringFunc(text, func(name string) string {
		value, ok := n[name]
		if !ok {
			missing = fmt.Errorf("%s has no value yet", name)
		}
		return fmt.Sprint(value)
	})
	return filled, missing
}

// match holds a received value against the expected one. It returns n with what was captured, or why they differ; n itself stays.
func (n names) match(want, got any) (names, error) {
	captured := maps.Clone(n)
	if err := captured.compare(want, got, "frame"); err != nil {
		return nil, err
	}
	return captured, nil
}

func (n names) compare(want, got any, at string) error {
	switch w := want.(type) {
	case string:
		return n.compareText(w, got, at)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s: want %d items, got %v", at, len(w), got)
		}
		for i := range w {
			if err := n.compare(w[i], g[i], fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if items, ok := w[contains].([]any); ok && len(w) == 1 {
			return n.compareSome(items, got, at)
		}
		return n.compareObject(w, got, at)
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s: want %v, got %v", at, want, got)
	}
	return nil
}

func (n names) compareText(want string, got any, at string) error {
	if want == anyValue {
		return nil
	}
	if placeholder.FindString(want) == want && want != "" {
		known, ok := n[want]
		if !ok {
			n[want] = got
			return nil
		}
		if !reflect.DeepEqual(known, got) {
			return fmt.Errorf("%s: %s was %v, got %v", at, want, known, got)
		}
		return nil
	}
	filled, err := n.fillText(want)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if filled != got {
		return fmt.Errorf("%s: want %q, got %v", at, filled, got)
	}
	return nil
}

func (n names) compareObject(want map[string]any, got any, at string) error {
	g, ok := got.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: want an object, got %v", at, got)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if key == open {
			continue
		}
		value, ok := g[key]
		if !ok {
			return fmt.Errorf("%s: member %s is missing in %v", at, key, got)
		}
		if err := n.compare(want[key], value, at+"."+key); err != nil {
			return err
		}
	}
	if _, more := want[open]; more {
		return nil
	}
	for key := range g {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("%s: unexpected member %s", at, key)
		}
	}
	return nil
}

// compareSome wants each item somewhere, no two at the same place.
func (n names) compareSome(want []any, got any, at string) error {
	g, ok := got.([]any)
	if !ok {
		return fmt.Errorf("%s: want an array, got %v", at, got)
	}
	used := make([]bool, len(g))
	for _, item := range want {
		found := false
		for i := range g {
			if used[i] {
				continue
			}
			if captured, err := n.match(item, g[i]); err == nil {
				maps.Copy(n, captured)
				used[i], found = true, true
				break
			}
		}
		if !found {
			return fmt.Errorf("%s: nothing like %v in %v", at, item, got)
		}
	}
	return nil
}
