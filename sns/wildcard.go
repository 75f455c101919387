package sns

import (
	"fmt"
	"strings"
)

// wildcard is a pattern in parts, between which anything may be.
type wildcard struct{ parts []string }

// parseWildcard reads a pattern: a * stands for any characters, \* and \\ for
// themselves. The places in problems count the quote before the pattern.
func parseWildcard(text string) (w wildcard, problem string) {
	var part []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*' && strings.HasPrefix(text[i+1:], "*"):
			return w, fmt.Sprintf("Consecutive wildcard characters at pos %d", i+1)
		case c == '*':
			w.parts = append(w.parts, string(part))
			part = part[:0]
		case c != '\\':
			part = append(part, c)
		case i+1 < len(text) && (text[i+1] == '*' || text[i+1] == '\\'):
			i++
			part = append(part, text[i])
		default:
			return w, fmt.Sprintf("Invalid escape character at pos %d", i+1)
		}
	}
	w.parts = append(w.parts, string(part))
	return w, ""
}

// stars returns the number of * of the pattern.
func (w *wildcard) stars() int { return len(w.parts) - 1 }

// matches looks for the parts one behind the other, each as early as can be, so
// its time is that of a search for each.
func (w *wildcard) matches(text string) bool {
	first, last := w.parts[0], w.parts[len(w.parts)-1]
	if len(w.parts) == 1 {
		return text == first
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range w.parts[1 : len(w.parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}
