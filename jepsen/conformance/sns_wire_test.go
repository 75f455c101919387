package conformance

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// snsWire is the Query protocol as SNS has it: lists and maps have an element of
// their own around their members, and nothing is ever in JSON.
const snsWire wire = "sns"

const (
	snsNamespace = "http://sns.amazonaws.com/doc/2010-03-31/"
	snsVersion   = "2010-03-31"
)

// signature says who sends a request, in the form of Signature Version 4. It is
// not valid, which nobody checks yet.
func signature(service string) map[string]string {
	return map[string]string{
		"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/" + service + "/aws4_request, SignedHeaders=host, Signature=00",
		"Content-Type":  "application/x-www-form-urlencoded; charset=utf-8",
	}
}

// snsRequest makes the signed request for an action of SNS.
func snsRequest(action string, members in) request {
	form := snsForm(action, members)
	return request{method: http.MethodPost, header: signature("sns"), body: []byte(form.Encode())}
}

func snsForm(action string, members in) url.Values {
	form := url.Values{"Action": {action}, "Version": {snsVersion}}
	for name, value := range members {
		addSNS(form, name, value)
	}
	return form
}

// addSNS adds a member in the form of botocore's serializer.
func addSNS(form url.Values, name string, value any) {
	switch v := value.(type) {
	case nil: // absent
	case string:
		form.Set(name, v)
	case bool:
		form.Set(name, strconv.FormatBool(v))
	case []byte:
		form.Set(name, base64.StdEncoding.EncodeToString(v))
	case []string:
		if len(v) == 0 {
			form.Set(name, "")
		}
		for i, text := range v {
			form.Set(fmt.Sprintf("%s.member.%d", name, i+1), text)
		}
	case []in:
		if len(v) == 0 {
			form.Set(name, "")
		}
		for i, entry := range v {
			for field, value := range entry {
				addSNS(form, fmt.Sprintf("%s.member.%d.%s", name, i+1, field), value)
			}
		}
	case map[string]string:
		for i, key := range sortedKeys(v) {
			form.Set(fmt.Sprintf("%s.entry.%d.key", name, i+1), key)
			form.Set(fmt.Sprintf("%s.entry.%d.value", name, i+1), v[key])
		}
	case in: // message attributes
		for i, key := range sortedKeys(v) {
			form.Set(fmt.Sprintf("%s.entry.%d.Name", name, i+1), key)
			for field, value := range v[key].(in) {
				addSNS(form, fmt.Sprintf("%s.entry.%d.Value.%s", name, i+1, field), value)
			}
		}
	default:
		panic(fmt.Sprintf("conformance: member %s has a %T", name, value))
	}
}

// snsLists and snsMaps are the members that are no texts; without anything in them
// they cannot be told from an empty text.
var (
	snsLists = map[string]bool{
		"Topics": true, "Subscriptions": true, "Tags": true, "Successful": true, "Failed": true,
		"phoneNumbers": true, "PhoneNumbers": true, "PlatformApplications": true,
	}
	snsMaps = map[string]bool{"Attributes": true, "attributes": true}
)

// foldSNS turns a structure into the tree that boto3 would give.
func foldSNS(e element) tree {
	out := tree{}
	for _, c := range e.children {
		switch {
		case snsLists[c.name]:
			list := []any{}
			for _, m := range c.children {
				if len(m.children) == 0 {
					list = append(list, m.text)
				} else {
					list = append(list, map[string]any(foldSNS(m)))
				}
			}
			out[c.name] = list
		case snsMaps[c.name]:
			entries := map[string]any{}
			for _, m := range c.children {
				entries[m.textOf("key")] = m.textOf("value")
			}
			out[c.name] = entries
		case c.name == "SenderFault" || c.name == "isOptedOut" || c.name == "IsInSandbox":
			out[c.name] = c.text == "true"
		default:
			out[c.name] = c.text
		}
	}
	return out
}
