package sns

import (
	"slices"
	"strconv"
	"strings"
)

// smsAttributes are what an account has set for text messages.
type smsAttributes struct {
	account    string
	attributes attributes
}

// ValidateSMSAttribute checks a setting for text messages; its errors have no
// prefix (AWS recordings test_set_invalid_sms_attributes). Empty resets a setting: so
// Terraform destroys its aws_sns_sms_preferences.
func ValidateSMSAttribute(a Attribute) *Error {
	refuse := func(message string) *Error { return &Error{Code: InvalidParameter, Message: message} }
	switch a.Name {
	case "DefaultSMSType":
		if a.Value != "" && a.Value != "Promotional" && a.Value != "Transactional" {
			return refuse("DefaultSMSType is invalid")
		}
	case "DefaultSenderID":
		letter := strings.ContainsFunc(a.Value, func(r rune) bool { return isAlphanumeric(r) && (r < '0' || r > '9') })
		other := strings.ContainsFunc(a.Value, func(r rune) bool { return !isAlphanumeric(r) && r != '-' })
		if a.Value != "" && (len(a.Value) > 11 || !letter || other) {
			return refuse("DefaultSenderID is invalid")
		}
	case "DeliveryStatusSuccessSamplingRate":
		if n, err := strconv.Atoi(a.Value); a.Value != "" && (err != nil || n < 0 || n > 100) {
			return refuse("DeliveryStatusSuccessSamplingRate is not an integer between 0-100")
		}
	case "MonthlySpendLimit", "DeliveryStatusIAMRole", "UsageReportS3Bucket":
		if len(a.Value) > maxReference {
			return refuse(string(a.Name) + " is invalid")
		}
	default:
		return refuse(string(a.Name) + " is not a valid attribute")
	}
	return nil
}

func (s *State) setSMSAttributes(c SetSMSAttributes) (Result, *Error) {
	i, ok := s.findSMS(c.Account)
	if !ok {
		s.sms = slices.Insert(s.sms, i, smsAttributes{account: c.Account})
	}
	for _, a := range c.Attributes {
		s.sms[i].attributes = s.sms[i].attributes.with(a.Name, a.Value)
	}
	return Done{}, nil
}

func (s *State) getSMSAttributes(c GetSMSAttributes) (Result, *Error) {
	i, ok := s.findSMS(c.Account)
	if !ok {
		return GetSMSAttributesResult{}, nil
	}
	return GetSMSAttributesResult{Attributes: slices.Clone(s.sms[i].attributes)}, nil
}

func (s *State) findSMS(account string) (int, bool) {
	return slices.BinarySearchFunc(s.sms, account, func(a smsAttributes, account string) int { return strings.Compare(a.account, account) })
}
