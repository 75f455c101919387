package policy

// MaxCached bounds the documents that a Cache keeps. Most take 2 KiB.
const MaxCached = 1 << 15

// Cache keeps documents by their text, so that a policy which many requests are
// held against is parsed once. It is not safe for concurrent use, and changes no
// answer.
type Cache struct{ documents map[string]*Document }

// Document returns the parsed policy; nil if the text is malformed, which is to
// be treated as a policy that allows nothing.
func (c *Cache) Document(text string) *Document {
	if d, ok := c.documents[text]; ok {
		return d
	}
	d, err := Parse(text)
	if err != nil {
		d = nil
	}
	if c.documents == nil || len(c.documents) >= MaxCached {
		c.documents = make(map[string]*Document)
	}
	c.documents[text] = d
	return d
}
