package httpapi

import (
	"slices"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sns"
)

var (
	givenSMSAttributes = wire.Map{Query: "attributes", Entry: "entry", Key: "key", Value: "value"} // AWS spells it so
	askedSMSAttributes = wire.List{Query: "attributes", Member: "member"}
)

// refusePush answers the actions of mobile push, which Holdfast does not have.
func refusePush(r *request) error {
	return &sns.Error{Code: snsInvalidAction, Message: r.name + " is not supported by Holdfast (mobile push)"}
}

// refuseSandbox answers the actions that would change an SMS sandbox.
func refuseSandbox(r *request) error {
	return &sns.Error{Code: snsInvalidAction, Message: r.name + " is not supported by Holdfast (SMS)"}
}

// listNothing answers a list of what Holdfast never has any of: inventories ask
// for them.
func listNothing(name string) func(r *request) error {
	list := wire.List{Query: name, Member: "member"}
	return func(r *request) error {
		if !r.caller.signed {
			return errUnsigned
		}
		r.out.OpenList(list)
		r.out.CloseList(list)
		return nil
	}
}

func getSMSSandboxAccountStatus(r *request) error {
	if !r.caller.signed {
		return errUnsigned
	}
	r.out.Bool("IsInSandbox", true)
	return nil
}

func setSMSAttributes(r *request) error {
	pairs, _ := r.in.TextMap(givenSMSAttributes)
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	if !r.caller.signed {
		return errUnsigned
	}
	attributes := asAttributes(pairs)
	for _, a := range attributes {
		if refusal := sns.ValidateSMSAttribute(a); refusal != nil {
			return refusal
		}
	}
	sns.SortAttributes(attributes)
	_, err := r.tell(sns.SetSMSAttributes{Account: r.caller.account, Attributes: attributes})
	return err
}

// getSMSAttributes answers what was set, and the one default that AWS shows (AWS
// recording test_get_sms_attributes_from_unmodified_region).
func getSMSAttributes(r *request) error {
	asked, _ := r.in.Texts(askedSMSAttributes)
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	if !r.caller.signed {
		return errUnsigned
	}
	found, err := inquire[sns.GetSMSAttributesResult](r, sns.GetSMSAttributes{Account: r.caller.account})
	if err != nil {
		return err
	}
	const limit = "MonthlySpendLimit"
	shown := map[string]string{limit: "1"}
	for _, a := range found.Attributes {
		shown[string(a.Name)] = a.Value
	}
	r.out.OpenMap(givenSMSAttributes)
	for _, name := range []string{
		"DefaultSMSType", "DefaultSenderID", "DeliveryStatusIAMRole", "DeliveryStatusSuccessSamplingRate", limit, "UsageReportS3Bucket",
	} {
		if value, ok := shown[name]; ok && (len(asked) == 0 || slices.Contains(asked, name)) {
			r.out.Pair(givenSMSAttributes, name, value)
		}
	}
	r.out.CloseMap(givenSMSAttributes)
	return nil
}

// checkIfPhoneNumberIsOptedOut: nobody is, for no message is sent.
func checkIfPhoneNumberIsOptedOut(r *request) error {
	if err := r.phoneParameter(); err != nil {
		return err
	}
	r.out.Bool("isOptedOut", false)
	return nil
}

func optInPhoneNumber(r *request) error { return r.phoneParameter() }

// phoneParameter checks the phone number of a request.
func (r *request) phoneParameter() error {
	text, _ := r.in.Text("phoneNumber")
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	if !r.caller.signed {
		return errUnsigned
	}
	if _, ok := sns.PhoneNumber(text); !ok {
		return sns.Invalid("PhoneNumber Reason: input incorrectly formatted")
	}
	return nil
}
