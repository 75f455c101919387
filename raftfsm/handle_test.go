package raftfsm

import (
	"strings"
	"testing"

	"holdfast.internal/sqs"
)

func testKey(id byte, from sqs.Time) HandleKey {
	k := HandleKey{ID: id, From: from}
	for i := range k.Key {
		k.Key[i] = id + byte(i)
	}
	return k
}

func testReceipt() sqs.Receipt {
	return sqs.Receipt{Incarnation: 3, Sequence: 1 << 40, ReceiveNumber: 2, ReceivedAt: 1_700_000_000_123}
}

// TestHandleGolden: handles are in the hands of clients when a node is
// upgraded, so their form does not change.
func TestHandleGolden(t *testing.T) {
	s := Settings{HandleKeys: []HandleKey{testKey(1, 0)}}
	const want = "AQEAAAAAAAAAAwAAAQAAAAAAAAAAAgAAAYvP5Wh7wtkcSaTFvq44YB-sULrEJA"
	for _, s := range []*Settings{&s, s.published()} {
		if got := s.MintHandle(testReceipt()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestHandleRoundTrip(t *testing.T) {
	s := Settings{HandleKeys: []HandleKey{testKey(1, 0), testKey(2, 1000), testKey(7, 2000)}}.published()
	receipts := []sqs.Receipt{
		{},
		testReceipt(),
		{Incarnation: 1<<64 - 1, Sequence: 1<<64 - 1, ReceiveNumber: 1<<32 - 1, ReceivedAt: 1<<63 - 1},
		{ReceivedAt: -1},
	}
	for _, want := range receipts {
		text := s.MintHandle(want)
		if got, ok := s.ParseHandle(text); !ok || got != want {
			t.Errorf("%s: got %v %v, want %v", text, got, ok, want)
		}
	}
}

// TestHandleTampered changes every character of a handle into every other, and
// tries the texts that a lax decoder takes for the same.
func TestHandleTampered(t *testing.T) {
	s := Settings{HandleKeys: []HandleKey{testKey(1, 0), testKey(2, 1<<62)}}.published()
	text := s.MintHandle(testReceipt())
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=\n\r\x00"
	for i := range text {
		for _, c := range []byte(alphabet) {
			if bad := text[:i] + string(rune(c)) + text[i+1:]; bad != text {
				if _, ok := s.ParseHandle(bad); ok {
					t.Errorf("%q was accepted", bad)
				}
			}
		}
	}
	for _, bad := range []string{"", "garbage", text + "=", text + "\n", text[:61], text[:61] + "\n" + text[61:], "\n" + text, strings.Repeat("A", 62)} {
		if _, ok := s.ParseHandle(bad); ok {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestHandleOfAnotherFormat: a later format is not read as this one, although
// the same key has signed it.
func TestHandleOfAnotherFormat(t *testing.T) {
	s := Settings{HandleKeys: []HandleKey{testKey(1, 0)}}
	b, err := handleEncoding.DecodeString(s.MintHandle(testReceipt()))
	if err != nil {
		t.Fatal(err)
	}
	b[0] = handleFormat + 1
	mac := s.HandleKeys[0].sum([handleFieldSize]byte(b[:handleFieldSize]))
	copy(b[handleFieldSize:], mac[:])
	if _, ok := s.ParseHandle(handleEncoding.EncodeToString(b)); ok {
		t.Error("it was accepted")
	}
}

func TestHandleOfAnotherCluster(t *testing.T) {
	ours := Settings{HandleKeys: []HandleKey{testKey(1, 0)}}
	theirs := Settings{HandleKeys: []HandleKey{{ID: 1, Key: [32]byte{9}}}}
	if _, ok := ours.ParseHandle(theirs.MintHandle(testReceipt())); ok {
		t.Error("it was accepted")
	}
}

// TestHandleKeyByReceiveTime: which key signs depends on the receipt alone, so
// that a repeated answer has the same handle after a change of keys.
func TestHandleKeyByReceiveTime(t *testing.T) {
	old := Settings{HandleKeys: []HandleKey{testKey(1, 500)}}
	both := Settings{HandleKeys: []HandleKey{testKey(1, 500), testKey(2, 1000)}}
	for _, c := range []struct {
		at   sqs.Time
		same bool
	}{{0, true}, {999, true}, {1000, false}} {
		r := sqs.Receipt{ReceivedAt: c.at}
		if same := old.MintHandle(r) == both.MintHandle(r); same != c.same {
			t.Errorf("received at %d: same handle as before the new key: %v, want %v", c.at, same, c.same)
		}
		if got, ok := both.ParseHandle(old.MintHandle(r)); !ok || got != r {
			t.Errorf("received at %d: the old handle gives %v %v", c.at, got, ok)
		}
	}
}

func FuzzParseHandle(f *testing.F) {
	s := Settings{HandleKeys: []HandleKey{testKey(1, 0), testKey(2, 1000)}}.published()
	f.Add(s.MintHandle(testReceipt()))
	f.Add("garbage")
	f.Add(strings.Repeat("A", 62))
	f.Fuzz(func(t *testing.T, text string) {
		if r, ok := s.ParseHandle(text); ok && s.MintHandle(r) != text {
			t.Errorf("%q is not what is minted for %v", text, r)
		}
	})
}

func BenchmarkMintHandle(b *testing.B) {
	s := Settings{HandleKeys: []HandleKey{testKey(1, 0)}}.published()
	r := testReceipt()
	b.ReportAllocs()
	for b.Loop() {
		_ = s.MintHandle(r)
	}
}

func BenchmarkParseHandle(b *testing.B) {
	s := Settings{HandleKeys: []HandleKey{testKey(1, 0)}}.published()
	text := s.MintHandle(testReceipt())
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.ParseHandle(text); !ok {
			b.Fatal("refused")
		}
	}
}
