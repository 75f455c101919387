package wire

import "testing"

func TestParseUUID(t *testing.T) {
	const text = "00112233-4455-6677-8899-aabbccddeeff"
	id, ok := ParseUUID(text)
	if got := string(AppendUUID(nil, id)); !ok || got != text {
		t.Errorf("got %s, %t, want %s", got, ok, text)
	}
	for _, text := range []string{
		"", "x", text + "0", text[1:], "00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeef-f",
		"00112233-4455-6677-8899-AABBCCDDEEFF", "{0112233-4455-6677-8899-aabbccddeeff",
	} {
		if _, ok := ParseUUID(text); ok {
			t.Errorf("%q was read", text)
		}
	}
}
