package awsquery_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"holdfast.internal/httpapi/awsquery"
	"holdfast.internal/httpapi/wire"
)

const namespace = "http://x/"

func TestWriter(t *testing.T) {
	var w awsquery.Writer
	w.Begin(nil, "Act", namespace, true)
	w.Text("Text", "a\"b")
	w.Int("Int", -5)
	w.Bool("Bool", true)
	w.Blob("Blob", []byte{1, 2, 3})
	w.OpenList(list)
	w.OpenStruct(list)
	w.CloseStruct(list)
	w.OpenStruct(list)
	w.Bytes("a", []byte("x"))
	w.CloseStruct(list)
	w.Item(list, "y")
	w.CloseList(list)
	m := wire.Map{Query: "M", Key: "K", Value: "V"}
	w.OpenMap(m)
	w.Pair(m, "k", "v")
	w.PairInt(m, "n", 7)
	w.OpenEntry(m, "e")
	w.Text("a", "b")
	w.CloseEntry(m)
	w.CloseMap(m)
	w.Hex("Hex", [16]byte{15: 0xab})
	w.UUID("UUID", [16]byte{0: 0x12, 15: 0xab})
	const want = `<?xml version="1.0"?><ActResponse xmlns="http://x/"><ActResult><Text>a&quot;b</Text><Int>-5</Int><Bool>true</Bool><Blob>AQID</Blob>` +
		`<A></A><A><a>x</a></A><A>y</A><M><K>k</K><V>v</V></M><M><K>n</K><V>7</V></M><M><K>e</K><V><a>b</a></V></M>` +
		`<Hex>000000000000000000000000000000ab</Hex><UUID>12000000-0000-0000-0000-0000000000ab</UUID></ActResult>` +
		`<ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></ActResponse>`
	if got := string(w.End("Act", "id", true)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	w.Begin(nil, "Act", namespace, true)
	if got := string(w.End("Act", "id", true)); !strings.Contains(got, `"><ActResult/><ResponseMetadata>`) {
		t.Errorf("without content: got %s", got)
	}
	w.Begin(nil, "Act", namespace, false)
	if got := string(w.End("Act", "id", false)); !strings.Contains(got, `"><ResponseMetadata>`) {
		t.Errorf("without a result: got %s", got)
	}
}

// readable is what a text becomes when it goes through XML 1.0.
func readable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// FuzzText has what was written read back by encoding/xml. A carriage return
// comes through: it decides the MD5 of a body.
func FuzzText(f *testing.F) {
	f.Add("a & <b> \"c\" 'd'\r\n\t\x00\x1f\x7fé😀\uFFFD\uFFFE\uFFFF\uF000\xff")
	f.Add(strings.Repeat("a", 9) + "\r" + strings.Repeat("é", 9) + "&quot;]]>")
	f.Fuzz(func(t *testing.T, s string) {
		var w awsquery.Writer
		w.Begin(nil, "Act", namespace, true)
		w.Text("Text", s)
		w.Bytes("Bytes", []byte(s))
		var got struct {
			Text  string `xml:"ActResult>Text"`
			Bytes string `xml:"ActResult>Bytes"`
		}
		if err := xml.Unmarshal(w.End("Act", "id", true), &got); err != nil {
			t.Fatal(err)
		}
		if want := readable(s); got.Text != want || got.Bytes != want {
			t.Errorf("got %q as text, %q as bytes, want %q", got.Text, got.Bytes, want)
		}
	})
}
