package sns

// Protocol is how a subscription is delivered.
type Protocol uint8

// The protocols of SNS, in the order of their names.
const (
	Application Protocol = iota + 1
	Email
	EmailJSON
	Firehose
	HTTP
	HTTPS
	Lambda
	SMS
	SQS
)

var protocolNames = [...]string{
	Application: "application", Email: "email", EmailJSON: "email-json", Firehose: "firehose",
	HTTP: "http", HTTPS: "https", Lambda: "lambda", SMS: "sms", SQS: "sqs",
}

// String is the protocol's name in the API; empty for the zero value.
func (p Protocol) String() string {
	if int(p) >= len(protocolNames) {
		return ""
	}
	return protocolNames[p]
}

// ParseProtocol returns the protocol of a name; 0 if there is none.
func ParseProtocol(name string) Protocol {
	for p := Application; p <= SQS; p++ {
		if protocolNames[p] == name {
			return p
		}
	}
	return 0
}

// confirms reports whether a subscription is pending until its endpoint has
// confirmed it.
func (p Protocol) confirms() bool {
	return p == HTTP || p == HTTPS || p == Email || p == EmailJSON
}

// raw reports whether the protocol knows RawMessageDelivery.
func (p Protocol) raw() bool { return p == HTTP || p == HTTPS || p == SQS || p == Firehose }
