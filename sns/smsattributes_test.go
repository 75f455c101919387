package sns_test

import (
	"testing"

	"holdfast.internal/sns"
)

// Terraform destroys aws_sns_sms_preferences by setting each attribute to "".
func TestSMSAttributeReset(t *testing.T) {
	for _, name := range []sns.AttributeName{
		"DefaultSMSType", "DefaultSenderID", "DeliveryStatusIAMRole", "DeliveryStatusSuccessSamplingRate", "MonthlySpendLimit", "UsageReportS3Bucket",
	} {
		if err := sns.ValidateSMSAttribute(sns.Attribute{Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
