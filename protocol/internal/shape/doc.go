// Package shape derives closed JSON shapes from Go types and holds wire values against them.
//
// It owns one thing: the meaning of the struct tags on the protocol's types. From one description come
// the strict check of incoming text (Check), the JSON Schema that is published (Schema) and the exact
// encoding of unions (MarshalUnion, MarshalChoice), so that the three cannot drift apart.
//
// # Words
//
// An object is a Go struct; a member is required unless its json tag says omitzero. A union is a struct with a
// blank field `_ struct{} shape:"union=a|b"`: its variants are the named member sets, told apart by the member
// tagged `kind` or, without one, by which members are there. A choice is a struct of pointers with a blank field
// `shape:"choice"`: exactly one of several whole types. A record is a map with free names, a Go array an array of exactly its length.
//
// Tag options of a member, comma separated: min, max (length of a string in code points, of an array in items, or the
// value of a number), unique (array without equal items), null (null is allowed), kind (the member that names the
// variant), in=a|b (required in these variants, absent in others), may=a|b (optional there), name=x (wire
// name where two variants use one name for two types).
//
// # Guarantees
//
// Check refuses unknown, missing and duplicate members, other letter case, wrong types, null where it is not
// allowed, invalid UTF-8 and anything after the value. It reads the text once and allocates little; only choices and
// unions with a name=… member read their part twice. Integers are exact only to 2^53, so larger ones are refused. A
// type is compiled at first use and kept for ever; all functions are safe for concurrent use.
//
// It does not decode: after Check, json.Unmarshal into the type cannot lose or reinterpret anything.
//
// Start reading at compile.go, then check.go.
package shape
