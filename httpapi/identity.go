package httpapi

import (
	"bytes"
)

// caller is who sent a request. Without credentials to check, any signature is
// taken for good.
type caller struct {
	account string // 12 digits
	signed  bool
}

// senderID is what a message says about its sender: the account id stands for
// the root of an account (SQS developer guide, SenderId).
func (c caller) senderID() string {
	if !c.signed {
		return "anonymous"
	}
	return c.account
}

var (
	credentialMark   = []byte("Credential=")
	signatureV4      = []byte("AWS4-HMAC-SHA256")
	credentialEnding = []byte("/")
)

// identify finds out who calls. An access key id of 12 digits names an account;
// any other belongs to the cluster's own.
func (r *request) identify() {
	key := r.accessKey()
	r.caller = caller{account: r.settings.Account, signed: len(key) > 0}
	if isAccount(key) {
		r.caller.account = string(key)
	}
}

// accessKey returns the id of the key that the request says it was signed with.
func (r *request) accessKey() []byte {
	if header := r.http.Request.Header.PeekCanonical(headerAuthorization); bytes.HasPrefix(header, signatureV4) {
		_, credential, _ := bytes.Cut(header, credentialMark)
		key, _, _ := bytes.Cut(credential, credentialEnding)
		return key
	}
	if r.protocol != queryProtocol {
		return nil
	}
	if credential, ok := r.in.Bytes("X-Amz-Credential"); ok { // a presigned URL
		key, _, _ := bytes.Cut(credential, credentialEnding)
		return key
	}
	key, _ := r.in.Bytes("AWSAccessKeyId") // signature version 2
	return key
}

// isAccount reports whether s is an account id: 12 digits.
func isAccount[T string | []byte](s T) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) == 12
}
