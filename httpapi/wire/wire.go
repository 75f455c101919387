// Package wire is how an action sees its request and its response, whichever
// protocol they travel in: awsjson and awsquery implement Input and Output.
//
// The two protocols name scalars alike. A list or a map has a name of its own
// in each: JSON has one member for all of it, Query repeats a flattened element
// in SQS, and has one member with elements in it in SNS (API references, request
// and response parameters).
package wire

// List names a member that is a list.
type List struct {
	JSON   string // the member
	Query  string // one element or, with Member, the member
	Member string // one element in the member; empty if the list is flattened
}

// Map names a member that maps texts to something.
type Map struct {
	JSON  string // the member
	Query string // one element or, with Entry, the member
	Entry string // one element in the member; empty if the map is flattened
	Key   string // within the element
	Value string // within the element
}

// Pair is an entry of a map of texts.
type Pair struct{ Key, Value string }

// Entry is an entry of a map of structures.
type Entry struct {
	Key   string
	Value Input
}

// ReadError says why a request cannot be read, in words for the client.
type ReadError string

func (e ReadError) Error() string { return string(e) }

// Input is one structure of a request. Its methods report false for what is
// absent; an empty value is there. A value of the wrong type is absent too, and
// Err tells.
type Input interface {
	// Text returns a scalar's text, as a copy that may be kept.
	Text(name string) (string, bool)
	// Bytes is Text without the copy: the bytes are only valid as long as the
	// request is.
	Bytes(name string) ([]byte, bool)
	// Int returns a whole number.
	Int(name string) (int64, bool)
	// Blob returns bytes that travel in base64, as a copy that may be kept.
	Blob(name string) ([]byte, bool)
	// Texts returns a list of texts.
	Texts(l List) ([]string, bool)
	// Structs returns a list of structures.
	Structs(l List) ([]Input, bool)
	// TextMap returns a map of texts, in the order of the request; a key that
	// was repeated is there once, with the value that counts.
	TextMap(m Map) ([]Pair, bool)
	// StructMap returns a map of structures, in the order of the request. A
	// repeated key is repeated.
	StructMap(m Map) ([]Entry, bool)
	// Err returns the first type error that any reader of this request found.
	Err() error
}

// Output writes one response. Open and Close must pair; a flattened list or map
// without anything in it must not be opened, since AWS leaves such members out.
type Output interface {
	Text(name, value string)
	Bytes(name string, text []byte)
	Int(name string, value int64)
	Bool(name string, value bool)
	// Blob writes bytes in base64.
	Blob(name string, value []byte)
	// Hex writes a digest in lower-case hexadecimal.
	Hex(name string, digest [16]byte)
	// UUID writes an id in the form of RFC 9562.
	UUID(name string, id [16]byte)

	OpenList(l List)
	// Item adds a text to the open list.
	Item(l List, text string)
	// OpenStruct adds a structure to the open list.
	OpenStruct(l List)
	CloseStruct(l List)
	CloseList(l List)

	OpenMap(m Map)
	// Pair adds a text to the open map.
	Pair(m Map, key, value string)
	// PairInt adds a whole number, as text, to the open map.
	PairInt(m Map, key string, value int64)
	// OpenEntry adds a structure to the open map.
	OpenEntry(m Map, key string)
	CloseEntry(m Map)
	CloseMap(m Map)
}
