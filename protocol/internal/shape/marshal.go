package shape

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MarshalUnion writes the members of the variant that the union at pointer p is: the required ones always, the optional ones
// when they are set. It fails when the kind is unknown or a member of another variant is set, so that nothing is dropped silently.
func MarshalUnion(enc *jsontext.Encoder, p any) error {
	value := reflect.ValueOf(p).Elem()
	s := of(value.Type())
	var set uint64
	for i, m := range s.members {
		if !value.Field(m.index).IsZero() {
			set |= 1 << i
		}
	}
	v, err := s.variantFor(value, set)
	if err != nil {
		return fmt.Errorf("encode %s: %w", s.name, err)
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for i, m := range s.members {
		if (set|v.required)&v.allowed>>i&1 == 0 {
			continue
		}
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, value.Field(m.index).Addr().Interface()); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

func (s *Shape) variantFor(value reflect.Value, set uint64) (variant, error) {
	if s.kind >= 0 {
		i, err := s.variant(value.Field(s.members[s.kind].index).String())
		if err != nil {
			return variant{}, err
		}
		for j, m := range s.members {
			if set>>j&1 == 1 && s.variants[i].allowed>>j&1 == 0 {
				return variant{}, problem("member %s does not belong to %s", m.name, s.variants[i].name)
			}
		}
		return s.variants[i], nil
	}
	fallback := -1
	for i, candidate := range s.variants {
		if set&^candidate.allowed != 0 {
			continue
		}
		if candidate.required&^set == 0 {
			return candidate, nil
		}
		fallback = i
	}
	if fallback < 0 {
		return variant{}, problem("members do not go together")
	}
	return s.variants[fallback], nil
}

// UnmarshalUnion reads a union with a name=… member, which json cannot decode by itself, into the union at pointer p.
// The text must have passed Check.
func UnmarshalUnion(dec *jsontext.Decoder, p any) error {
	value := reflect.ValueOf(p).Elem()
	s := of(value.Type())
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	v, err := s.variantOf(raw)
	if err != nil {
		return err
	}
	value.SetZero()
	members := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if _, err := members.ReadToken(); err != nil {
		return err
	}
	for members.PeekKind() == '"' {
		name, err := members.ReadToken()
		if err != nil {
			return err
		}
		i := s.member([]byte(name.String()), v)
		if i < 0 {
			return problem("unknown member %s", name)
		}
		if err := json.UnmarshalDecode(members, value.Field(s.members[i].index).Addr().Interface()); err != nil {
			return err
		}
	}
	return nil
}

// MarshalChoice writes the one form of the choice at pointer p that is set. It fails when several are, or when none is and the choice has no null.
func MarshalChoice(enc *jsontext.Encoder, p any) error {
	value := reflect.ValueOf(p).Elem()
	s := of(value.Type())
	chosen := -1
	for _, m := range s.members {
		if value.Field(m.index).IsNil() {
			continue
		}
		if chosen >= 0 {
			return fmt.Errorf("encode %s: more than one form is set", s.name)
		}
		chosen = m.index
	}
	if chosen >= 0 {
		return json.MarshalEncode(enc, value.Field(chosen).Interface())
	}
	if !s.null {
		return fmt.Errorf("encode %s: no form is set", s.name)
	}
	return enc.WriteToken(jsontext.Null)
}

// UnmarshalChoice reads the first form that fits into the choice at pointer p.
func UnmarshalChoice(dec *jsontext.Decoder, p any) error {
	value := reflect.ValueOf(p).Elem()
	s := of(value.Type())
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	value.SetZero()
	if s.null && raw.Kind() == 'n' {
		return nil
	}
	i, err := s.choose(raw)
	if err != nil {
		return err
	}
	field := value.Field(s.members[i].index)
	field.Set(reflect.New(field.Type().Elem()))
	return json.Unmarshal(raw, field.Interface())
}
