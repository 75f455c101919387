package httpapi

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/awsquery"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// The versions of the two APIs of the Query protocol.
const (
	snsVersion = "2010-03-31"
	sqsVersion = "2012-11-05"
)

// snsActions are all actions of SNS.
var snsActions = table(snsNamespace,
	action{name: "AddPermission", run: addTopicPermission},
	action{name: "CheckIfPhoneNumberIsOptedOut", run: checkIfPhoneNumberIsOptedOut, output: true},
	action{name: "ConfirmSubscription", run: confirmSubscription, output: true, open: true},
	action{name: "CreatePlatformApplication", run: refusePush, output: true},
	action{name: "CreatePlatformEndpoint", run: refusePush, output: true},
	action{name: "CreateSMSSandboxPhoneNumber", run: refuseSandbox, output: true},
	action{name: "CreateTopic", run: createTopic, output: true},
	action{name: "DeleteEndpoint", run: refusePush},
	action{name: "DeletePlatformApplication", run: refusePush},
	action{name: "DeleteSMSSandboxPhoneNumber", run: refuseSandbox, output: true},
	action{name: "DeleteTopic", run: deleteTopic},
	action{name: "GetDataProtectionPolicy", run: getDataProtectionPolicy, output: true},
	action{name: "GetEndpointAttributes", run: refusePush, output: true},
	action{name: "GetPlatformApplicationAttributes", run: refusePush, output: true},
	action{name: "GetSMSAttributes", run: getSMSAttributes, output: true},
	action{name: "GetSMSSandboxAccountStatus", run: getSMSSandboxAccountStatus, output: true},
	action{name: "GetSubscriptionAttributes", run: getSubscriptionAttributes, output: true},
	action{name: "GetTopicAttributes", run: getTopicAttributes, output: true},
	action{name: "ListEndpointsByPlatformApplication", run: refusePush, output: true},
	action{name: "ListOriginationNumbers", run: listNothing("PhoneNumbers"), output: true},
	action{name: "ListPhoneNumbersOptedOut", run: listNothing("phoneNumbers"), output: true}, // AWS spells it so
	action{name: "ListPlatformApplications", run: listNothing("PlatformApplications"), output: true},
	action{name: "ListSMSSandboxPhoneNumbers", run: listNothing("PhoneNumbers"), output: true},
	action{name: "ListSubscriptions", run: listSubscriptions, output: true},
	action{name: "ListSubscriptionsByTopic", run: listSubscriptionsByTopic, output: true},
	action{name: "ListTagsForResource", run: listTagsForResource, output: true},
	action{name: "ListTopics", run: listTopics, output: true},
	action{name: "OptInPhoneNumber", run: optInPhoneNumber, output: true},
	action{name: "Publish", run: publish, output: true},
	action{name: "PublishBatch", run: publishBatch, output: true},
	action{name: "PutDataProtectionPolicy", run: putDataProtectionPolicy},
	action{name: "RemovePermission", run: removeTopicPermission},
	action{name: "SetEndpointAttributes", run: refusePush},
	action{name: "SetPlatformApplicationAttributes", run: refusePush},
	action{name: "SetSMSAttributes", run: setSMSAttributes, output: true},
	action{name: "SetSubscriptionAttributes", run: setSubscriptionAttributes},
	action{name: "SetTopicAttributes", run: setTopicAttributes},
	action{name: "Subscribe", run: subscribe, output: true},
	action{name: "TagResource", run: tagResource, output: true},
	action{name: "Unsubscribe", run: unsubscribe, open: true},
	action{name: "UntagResource", run: untagResource, output: true},
	action{name: "VerifySMSSandboxPhoneNumber", run: refuseSandbox, output: true},
)

// isSNS tells the requests of SNS from those of SQS: by their version, else by the
// action, and for an action that both or neither of them has by what the request
// was signed for. The links in SNS messages have no version.
func (r *request) isSNS(name string) bool {
	switch version, _ := r.in.Text("Version"); version {
	case snsVersion:
		return true
	case sqsVersion:
		return false
	}
	if one, other := snsActions[name] != nil, queryAction(name) != nil; one != other {
		return one
	}
	presigned, _ := r.in.Text("X-Amz-Credential")
	return r.path.Name == "" && (r.isSignedForSNS() || isScopeOfSNS(presigned))
}

// isSignedForSNS reports whether the head of a request says that it was signed for
// SNS.
func (r *request) isSignedForSNS() bool {
	header := r.http.Request.Header.PeekCanonical(headerAuthorization)
	if !bytes.HasPrefix(header, signatureV4) {
		return false
	}
	_, credential, _ := bytes.Cut(header, credentialMark)
	credential, _, _ = bytes.Cut(credential, []byte{','})
	return isScopeOfSNS(string(credential))
}

// isScopeOfSNS looks at a credential: key, day, region, service and aws4_request,
// with slashes between them. A key may have slashes, too.
func isScopeOfSNS(credential string) bool {
	parts := strings.Split(credential, "/")
	return len(parts) >= 5 && parts[len(parts)-2] == "sns"
}

// findSNS finds the action.
func (r *request) findSNS(name string) error {
	if name == "" {
		return &sns.Error{Code: snsMissingAction, Message: "The request must contain the parameter Action."}
	}
	a := snsActions[name]
	if a == nil {
		return &sns.Error{Code: snsInvalidAction, Message: "Could not find operation " + name + " for version " + snsVersion}
	}
	r.name, r.action = a.name, a
	return nil
}

// The errors of the protocol itself, and of the service as a whole, beside those
// of sns.
const (
	snsInvalidAction      sns.Code = "InvalidAction"
	snsMissingAction      sns.Code = "MissingAction"
	snsMissingToken       sns.Code = "MissingAuthenticationToken"
	snsMalformedQuery     sns.Code = "MalformedQueryString"
	snsServiceUnavailable sns.Code = "ServiceUnavailable"
	snsTooLarge           sns.Code = "RequestEntityTooLarge"
	snsUnsupportedMedia   sns.Code = "UnsupportedMediaType"
)

// unreadableCodes are the codes for requests that could not be read, where they
// are not MalformedQueryString.
var unreadableCodes = map[sqs.Code]sns.Code{
	codeTooLarge:         snsTooLarge,
	codeUnsupportedMedia: snsUnsupportedMedia,
	sqs.RequestThrottled: sns.Throttling,
}

// snsStatuses has the codes whose HTTP status is not 400 (SNS API reference, the
// errors of each action).
var snsStatuses = map[sns.Code]int{
	sns.NotFound:                  404,
	sns.ResourceNotFound:          404,
	sns.AuthorizationError:        403,
	sns.SubscriptionLimitExceeded: 403,
	sns.FilterPolicyLimitExceeded: 403,
	"TopicLimitExceeded":          403,
	snsMissingToken:               403,
	sns.InternalError:             500,
	snsServiceUnavailable:         503,
	snsTooLarge:                   413,
	snsUnsupportedMedia:           415,
}

func snsStatus(code sns.Code) int {
	if status, ok := snsStatuses[code]; ok {
		return status
	}
	return 400
}

// snsAnswerTo is answerTo for SNS.
func snsAnswerTo(err error) (answer *sns.Error, done outcome, fault bool) {
	if errors.As(err, &answer) {
		if snsStatus(answer.Code) >= 500 { // as in answerTo
			return answer, outcomeUnknown, false
		}
		return answer, outcomeDecided, false
	}
	if unreadable, ok := errors.AsType[*sqs.Error](err); ok { // of the reading of the request
		code, ok := unreadableCodes[unreadable.Code]
		if !ok {
			code = snsMalformedQuery
		}
		return &sns.Error{Code: code, Message: unreadable.Message}, outcomeDecided, false
	}
	switch {
	case errors.Is(err, cluster.ErrNoLeader):
		return &sns.Error{Code: snsServiceUnavailable, Message: "No leader could take the request. Try again."}, outcomeNotApplied, false
	case errors.Is(err, cluster.ErrOverloaded):
		return &sns.Error{Code: sns.Throttling, Message: "Rate exceeded"}, outcomeNotApplied, false
	case errors.Is(err, cluster.ErrOutcomeUnknown), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &sns.Error{Code: snsServiceUnavailable, Message: "It is not known whether the request was carried out."}, outcomeUnknown, false
	}
	return &sns.Error{Code: sns.InternalError, Message: unknownError}, outcomeUnknown, !errors.Is(err, errPanicked)
}

// refuseSNS is refuse for SNS.
func (r *request) refuseSNS(answer *sns.Error, done outcome) {
	status := snsStatus(answer.Code)
	buf := awsquery.AppendFault(r.dropResponse(), snsNamespace, awsquery.Fault{
		Code: string(answer.Code), Message: bounded(answer.Message), Sender: status < 500, RequestID: string(r.id[:]),
	})
	response := &r.http.Response
	setBody(response, buf)
	response.SetStatusCode(status)
	if done != outcomeDecided {
		response.Header.Set("x-holdfast-outcome", string(done))
	}
}

// tell has the broker carry out a command of SNS. Its error may be an answer.
func (r *request) tell(c sns.Command, contents ...[]byte) (sns.Result, error) {
	done, err := r.server.broker.Do(r.server.context, c, contents...)
	if err != nil {
		return nil, err
	}
	r.index = done.Index
	if done.Err != nil {
		return nil, done.Err
	}
	return done.Result.(sns.Result), nil
}

// inquire is tell for a command that has a result of its own.
func inquire[R sns.Result](r *request, c sns.Command, contents ...[]byte) (R, error) {
	result, err := r.tell(c, contents...)
	if err != nil {
		var none R
		return none, err
	}
	return result.(R), nil
}

// exists returns an error if there is no such topic. AWS reports that before what
// is wrong with the content of a request.
func (r *request) exists(topic sns.TopicKey) error {
	_, err := r.tell(sns.GetTopicAttributes{Topic: topic})
	return err
}

// refuseTo returns the error of a request about a topic, unless the topic does not
// exist.
func (r *request) refuseTo(topic sns.TopicKey, refusal error) error {
	if err := r.exists(topic); err != nil {
		return err
	}
	return refusal
}
