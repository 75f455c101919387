package history

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Name identifies the one send that a body belongs to.
type Name struct {
	Run     string // of the run; letters and digits
	Process int    // of the sender
	Counter int    // rises by one with each send of the process
}

// filler is what bodies are padded with: characters that codecs get wrong.
const filler = "abc\r\n\t\"\\&quot;<é漢😀>%41+/{}[]=;'~ "

// Body returns the body that names n, at least size bytes long and at most a
// few bytes longer: run.process.counter.filler.crc32.
func Body(n Name, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%d.%d.", n.Run, n.Process, n.Counter)
	const tail = len(".00000000")
	for b.Len()+tail < size {
		missing := size - b.Len() - tail
		if missing >= len(filler) {
			b.WriteString(filler)
			continue
		}
		b.WriteString(strings.Repeat("x", missing))
	}
	return fmt.Sprintf("%s.%08x", b.String(), crc32.ChecksumIEEE([]byte(b.String())))
}

// ParseBody returns the name in a body, or an error if a byte of it is not what
// Body wrote.
func ParseBody(body string) (Name, error) {
	end := strings.LastIndexByte(body, '.')
	if end < 0 {
		return Name{}, fmt.Errorf("parse body of %d bytes: no checksum", len(body))
	}
	sum, err := strconv.ParseUint(body[end+1:], 16, 32)
	if err != nil {
		return Name{}, fmt.Errorf("parse body of %d bytes: %w", len(body), err)
	}
	if got := crc32.ChecksumIEEE([]byte(body[:end])); uint64(got) != sum {
		return Name{}, fmt.Errorf("parse body of %d bytes: checksum %08x, its text says %08x", len(body), got, sum)
	}
	parts := strings.SplitN(body, ".", 4)
	if len(parts) < 4 {
		return Name{}, fmt.Errorf("parse body of %d bytes: %d parts", len(body), len(parts))
	}
	n := Name{Run: parts[0]}
	if n.Process, err = strconv.Atoi(parts[1]); err != nil {
		return Name{}, fmt.Errorf("parse body's process: %w", err)
	}
	if n.Counter, err = strconv.Atoi(parts[2]); err != nil {
		return Name{}, fmt.Errorf("parse body's counter: %w", err)
	}
	return n, nil
}
