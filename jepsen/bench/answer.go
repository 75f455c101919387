package bench

import "bytes"

// fields are the texts around a value in an answer: the name of the field, then
// open, the value, and end.
type fields struct{ handle, body, queueURL, open, end []byte }

var (
	jsonFields = fields{[]byte(`"ReceiptHandle":`), []byte(`"Body":`), []byte(`"QueueUrl":`), []byte(`"`), []byte(`"`)}
	xmlFields  = fields{[]byte("<ReceiptHandle>"), []byte("<Body>"), []byte("<QueueUrl>"), nil, []byte("<")}
)

func fieldsOf(protocol string) *fields {
	if protocol == JSON {
		return &jsonFields
	}
	return &xmlFields
}

// find returns the first value of the field in an answer and the rest behind it;
// nil if there is none.
func (f *fields) find(answer, field []byte) (value, rest []byte) {
	i := bytes.Index(answer, field)
	if i < 0 {
		return nil, nil
	}
	answer = bytes.TrimLeft(answer[i+len(field):], " ")
	if !bytes.HasPrefix(answer, f.open) {
		return nil, nil
	}
	answer = answer[len(f.open):]
	end := bytes.Index(answer, f.end)
	if end < 0 {
		return nil, nil
	}
	return answer[:end], answer[end:]
}

// handles appends the receipt handles of an answer to into, which it returns.
func (f *fields) handles(into [][]byte, answer []byte) [][]byte {
	for {
		handle, rest := f.find(answer, f.handle)
		if handle == nil {
			return into
		}
		into = append(into, handle)
		answer = rest
	}
}

// oddHandles is handles for those messages only whose body begins with an odd
// number.
func (f *fields) oddHandles(into [][]byte, answer []byte) [][]byte {
	for {
		handle, rest := f.find(answer, f.handle)
		if handle == nil {
			return into
		}
		if n, ok := f.stamp(rest); ok && n%2 == 1 {
			into = append(into, handle)
		}
		answer = rest
	}
}

// stamp returns the number at the start of the first message body of an answer.
func (f *fields) stamp(answer []byte) (uint64, bool) {
	body, _ := f.find(answer, f.body)
	if len(body) < stampSize {
		return 0, false
	}
	var n uint64
	for _, c := range body[:stampSize] {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
