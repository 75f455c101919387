package main

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// valueReaders read the values of flags, of all types that flags have but yes and no.
// What is wrong with one is said in the words of who types it, not in those of Go's
// parsers.
func valueReaders() []kong.Option {
	return []kong.Option{
		valueReader("a value", func(text string) (string, error) { return text, nil }),
		valueReader("a whole number", strconv.Atoi),
		valueReader("a whole number, 0 or more", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }),
		valueReader("a time such as 250ms, 10s or 1h30m", time.ParseDuration),
		valueReader("a network such as 10.0.0.0/8, or 10.0.0.1/32 for one address", netip.ParsePrefix),
		valueReader("a size such as 512MiB or 1GiB", parseByteSize),
	}
}

// valueReader reads values of the type T.
func valueReader[T any](wanted string, parse func(text string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		token := ctx.Scan.Pop()
		text := token.String()
		if !token.IsValue() && !isNegative(text) { // the end of the line, or the next flag
			return fmt.Errorf("want %s", wanted)
		}
		value, err := parse(text)
		if err != nil {
			return fmt.Errorf("%q: want %s", text, wanted)
		}
		target.Set(reflect.ValueOf(value))
		return nil
	}))
}

// isNegative reports whether what looks like a flag is a number.
func isNegative(text string) bool {
	digits, ok := strings.CutPrefix(text, "-")
	return ok && strings.IndexAny(digits, "0123456789") == 0
}

// byteSize is a number of bytes, written as 512MiB, 1GiB or plainly.
type byteSize int64

var byteUnits = []struct {
	suffix string
	size   byteSize
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

var errSize = errors.New("no size below 8 EiB")

func parseByteSize(text string) (byteSize, error) {
	digits, size := text, byteSize(1)
	for _, unit := range byteUnits {
		if rest, ok := strings.CutSuffix(digits, unit.suffix); ok {
			digits, size = rest, unit.size
			break
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
	if err != nil || n > uint64(1<<63-1)/uint64(size) {
		return 0, errSize
	}
	return byteSize(n) * size, nil
}

// String is the size in the largest binary unit that divides it.
func (s byteSize) String() string {
	for i := 3; i >= 0; i-- {
		if unit := byteUnits[i]; s >= unit.size && s%unit.size == 0 {
			return fmt.Sprintf("%d%s", s/unit.size, unit.suffix)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
