package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// in holds members under their names in the AWS model. A value is a string,
// int, bool, []byte (a blob), []string, in, []in, map[string]string, or nil
// for a JSON null.
type in map[string]any

// tree is an answer's output in the form of the JSON protocol, whichever
// protocol it came in.
type tree map[string]any

// wire is one of the two protocols.
type wire string

const (
	jsonWire  wire = "json"
	queryWire wire = "query"
)

// request is one HTTP request, before it is rendered.
type request struct {
	method string // POST unless given
	path   string // "/" unless given; may hold a query string
	host   string // of the Host header, if not the endpoint's
	header map[string]string
	body   []byte
}

// answer is one HTTP response, read into the form that both protocols share.
type answer struct {
	wire   wire
	status int
	header http.Header
	body   []byte
	out    tree // of a 2xx

	// Of an error:
	kind    string // JSON: __type
	code    string // Query: Code; JSON: from x-amzn-query-error
	fault   string // Sender or Receiver
	message string
	detail  bool // XML: there is an empty Detail element

	requestID string // of the XML body
	result    bool   // XML: there is an element for the output
}

// render makes the request for an action.
func (w wire) render(action string, members in) request {
	if w == queryWire {
		form := renderForm(action, members)
		return request{
			method: http.MethodPost,
			header: map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
			body:   []byte(form.Encode()),
		}
	}
	return request{
		method: http.MethodPost,
		header: map[string]string{
			"Content-Type":      "application/x-amz-json-1.0",
			"X-Amz-Target":      "AmazonSQS." + action,
			"x-amzn-query-mode": "true",
		},
		body: renderJSON(members),
	}
}

func renderJSON(members in) []byte {
	if members == nil {
		members = in{}
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(members); err != nil {
		panic(fmt.Sprintf("conformance: render %v: %v", members, err))
	}
	return body.Bytes()
}

// flattened are the Query names of the list and map members.
var flattened = map[string]string{
	"AWSAccountIds":               "AWSAccountId",
	"Actions":                     "ActionName",
	"AttributeNames":              "AttributeName",
	"Attributes":                  "Attribute",
	"BinaryListValues":            "BinaryListValue",
	"MessageAttributeNames":       "MessageAttributeName",
	"MessageAttributes":           "MessageAttribute",
	"MessageSystemAttributeNames": "MessageSystemAttributeName",
	"MessageSystemAttributes":     "MessageSystemAttribute",
	"StringListValues":            "StringListValue",
	"TagKeys":                     "TagKey",
	"Tags":                        "Tag",
	"tags":                        "Tag",
}

func renderForm(action string, members in) url.Values {
	form := url.Values{"Action": {action}, "Version": {"2012-11-05"}}
	for _, name := range sortedKeys(members) {
		flat := flattened[name]
		if name == "Entries" {
			flat = action + "RequestEntry"
		}
		addForm(form, "", name, flat, members[name])
	}
	return form
}

func addForm(form url.Values, prefix, name, flat string, value any) {
	switch v := value.(type) {
	case nil: // absent
	case string:
		form.Set(prefix+name, v)
	case int:
		form.Set(prefix+name, strconv.Itoa(v))
	case bool:
		form.Set(prefix+name, strconv.FormatBool(v))
	case []byte:
		form.Set(prefix+name, base64.StdEncoding.EncodeToString(v))
	case []string:
		for i, text := range v {
			form.Set(fmt.Sprintf("%s%s.%d", prefix, flat, i+1), text)
		}
	case [][]byte:
		for i, blob := range v {
			form.Set(fmt.Sprintf("%s%s.%d", prefix, flat, i+1), base64.StdEncoding.EncodeToString(blob))
		}
	case map[string]string:
		key := "Name"
		if flat == "Tag" {
			key = "Key"
		}
		for i, name := range sortedKeys(v) {
			form.Set(fmt.Sprintf("%s%s.%d.%s", prefix, flat, i+1, key), name)
			form.Set(fmt.Sprintf("%s%s.%d.Value", prefix, flat, i+1), v[name])
		}
	case in: // a map of message attributes
		for i, name := range sortedKeys(v) {
			form.Set(fmt.Sprintf("%s%s.%d.Name", prefix, flat, i+1), name)
			for field, value := range v[name].(in) {
				addForm(form, fmt.Sprintf("%s%s.%d.Value.", prefix, flat, i+1), field, flattened[field], value)
			}
		}
	case []in: // batch entries
		for i, entry := range v {
			for field, value := range entry {
				addForm(form, fmt.Sprintf("%s%s.%d.", prefix, flat, i+1), field, flattened[field], value)
			}
		}
	default:
		panic(fmt.Sprintf("conformance: member %s has a %T", name, value))
	}
}

// do sends r to the broker at endpoint and reads the answer as one of w.
func (w wire) do(client *http.Client, endpoint string, r request) (answer, error) {
	path := r.path
	if path == "" {
		path = "/"
	}
	method := r.method
	if method == "" {
		method = http.MethodPost
	}
	httpRequest, err := http.NewRequest(method, endpoint+path, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range r.header {
		httpRequest.Header.Set(name, value)
	}
	if r.host != "" {
		httpRequest.Host = r.host
	}
	response, err := client.Do(httpRequest)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return w.parse(response.StatusCode, response.Header, body)
}

// parse reads an answer. An error means that no SDK could read it either.
func (w wire) parse(status int, header http.Header, body []byte) (answer, error) {
	a := answer{wire: w, status: status, header: header, body: body}
	var err error
	switch {
	case w == jsonWire:
		err = a.parseJSON()
	case w == snsWire:
		err = a.parseXML(snsNamespace, foldSNS)
	case status == http.StatusNotFound && bytes.Contains(body, []byte("<UnknownOperationException")):
	default:
		err = a.parseXML(queryNamespace, fold)
	}
	if err != nil {
		return a, fmt.Errorf("read the %s answer %d %q: %w", w, status, clip(body), err)
	}
	return a, nil
}

func (a *answer) parseJSON() error {
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &a.out); err != nil {
			return err
		}
	}
	if a.status < 300 {
		return nil
	}
	a.kind, _ = a.out["__type"].(string)
	a.message, _ = a.out["message"].(string)
	if text, ok := a.out["Message"].(string); ok {
		a.message = text
	}
	a.code, a.fault, _ = strings.Cut(a.header.Get("x-amzn-query-error"), ";")
	return nil
}

// element is a node of an XML answer.
type element struct {
	name     string
	space    string
	text     string
	children []element
}

func (e element) child(name string) (element, bool) {
	i := slices.IndexFunc(e.children, func(c element) bool { return c.name == name })
	if i < 0 {
		return element{}, false
	}
	return e.children[i], true
}

func (e element) textOf(name string) string {
	c, _ := e.child(name)
	return c.text
}

const queryNamespace = "http://queue.amazonaws.com/doc/2012-11-05/"

// parseXML reads an answer in one of the namespaces; fold makes a tree of its output.
func (a *answer) parseXML(namespace string, fold func(element) tree) error {
	root, err := parseElement(a.body)
	if err != nil {
		return err
	}
	if root.space != namespace {
		return fmt.Errorf("the namespace is %q", root.space)
	}
	if root.name == "ErrorResponse" {
		return a.parseError(root)
	}
	action, ok := strings.CutSuffix(root.name, "Response")
	if !ok {
		return fmt.Errorf("the root element is %s", root.name)
	}
	metadata, _ := root.child("ResponseMetadata")
	a.requestID = metadata.textOf("RequestId")
	var result element
	if result, a.result = root.child(action + "Result"); a.result {
		a.out = fold(result)
	}
	return nil
}

func (a *answer) parseError(root element) error {
	e, ok := root.child("Error")
	if !ok {
		return errors.New("an ErrorResponse without Error")
	}
	a.code, a.message, a.fault = e.textOf("Code"), e.textOf("Message"), e.textOf("Type")
	a.requestID = root.textOf("RequestId")
	var detail element
	if detail, a.detail = e.child("Detail"); detail.text != "" || len(detail.children) > 0 {
		return errors.New("a Detail that is not empty")
	}
	return nil
}

func parseElement(text []byte) (element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	stack := []element{{}}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return element{}, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			stack = append(stack, element{name: token.Name.Local, space: token.Name.Space})
		case xml.CharData:
			stack[len(stack)-1].text += string(token)
		case xml.EndElement:
			done := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			stack[len(stack)-1].children = append(stack[len(stack)-1].children, done)
		}
	}
	if len(stack[0].children) != 1 {
		return element{}, fmt.Errorf("%d root elements", len(stack[0].children))
	}
	return stack[0].children[0], nil
}

// fold turns a result element into the tree that the JSON protocol would give.
func fold(result element) tree {
	out := tree{}
	for _, c := range result.children {
		switch {
		case c.name == "QueueUrl" && result.name == "ListQueuesResult":
			appendTo(out, "QueueUrls", c.text)
		case c.name == "QueueUrl" && result.name == "ListDeadLetterSourceQueuesResult":
			appendTo(out, "queueUrls", c.text)
		case c.name == "Attribute":
			putIn(out, "Attributes", c.textOf("Name"), c.textOf("Value"))
		case c.name == "Tag":
			putIn(out, "Tags", c.textOf("Key"), c.textOf("Value"))
		case c.name == "MessageAttribute":
			value, _ := c.child("Value")
			putIn(out, "MessageAttributes", c.textOf("Name"), map[string]any(fold(value)))
		case c.name == "Message" && len(c.children) > 0:
			appendTo(out, "Messages", map[string]any(fold(c)))
		case c.name == "BatchResultErrorEntry":
			appendTo(out, "Failed", map[string]any(fold(c)))
		case c.name == "ListMessageMoveTasksResultEntry":
			appendTo(out, "Results", map[string]any(fold(c)))
		case strings.HasSuffix(c.name, "BatchResultEntry"):
			appendTo(out, "Successful", map[string]any(fold(c)))
		case c.name == "SenderFault":
			out[c.name] = c.text == "true"
		default:
			out[c.name] = c.text
		}
	}
	return out
}

func appendTo(out tree, member string, value any) {
	list, _ := out[member].([]any)
	out[member] = append(list, value)
}

func putIn(out tree, member, name string, value any) {
	entries, _ := out[member].(map[string]any)
	if entries == nil {
		entries = map[string]any{}
		out[member] = entries
	}
	entries[name] = value
}

// at follows names of members and indexes of lists; nil means that there is
// no such place.
func (t tree) at(path ...any) any {
	var here any = map[string]any(t)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			members, _ := here.(map[string]any)
			here = members[step]
		case int:
			list, _ := here.([]any)
			if step >= len(list) {
				return nil
			}
			here = list[step]
		}
	}
	return here
}

// text is at, for a string; absent is "".
func (t tree) text(path ...any) string {
	text, _ := t.at(path...).(string)
	return text
}

// number is at, for a number, which Query writes as a text; absent is "".
func (t tree) number(path ...any) string {
	if n, ok := t.at(path...).(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return t.text(path...)
}

// list is at, for a list of structures.
func (t tree) list(path ...any) []tree {
	values, _ := t.at(path...).([]any)
	var list []tree
	for _, value := range values {
		members, _ := value.(map[string]any)
		list = append(list, members)
	}
	return list
}

// texts is at, for a list of strings.
func (t tree) texts(path ...any) []string {
	values, _ := t.at(path...).([]any)
	var list []string
	for _, value := range values {
		text, _ := value.(string)
		list = append(list, text)
	}
	return list
}

// names are the keys of the structure at path, sorted.
func (t tree) names(path ...any) []string {
	members, _ := t.at(path...).(map[string]any)
	return sortedKeys(members)
}

func sortedKeys[V any, M ~map[string]V](m M) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func clip(text []byte) []byte {
	if len(text) > 600 {
		return append(slices.Clone(text[:600]), "…"...)
	}
	return text
}
