package httpapi

const (
	sqsNamespace = "http://queue.amazonaws.com/doc/2012-11-05/"
	snsNamespace = "http://sns.amazonaws.com/doc/2010-03-31/"
	stsNamespace = "https://sts.amazonaws.com/doc/2011-06-15/"
)

// action is one action of the API.
type action struct {
	name      string
	run       func(r *request) error
	output    bool   // its response has a document, even if there is nothing to say
	open      bool   // who has not signed may call it
	service   bool   // it is not about a queue, and is refused at a queue's URL
	namespace string // of its responses in the Query protocol
}

// sqsActions are all actions of SQS.
var sqsActions = table(sqsNamespace,
	action{name: "AddPermission", run: addPermission},
	action{name: "CancelMessageMoveTask", run: cancelMessageMoveTask, output: true},
	action{name: "ChangeMessageVisibility", run: changeMessageVisibility},
	action{name: "ChangeMessageVisibilityBatch", run: changeMessageVisibilityBatch, output: true},
	action{name: "CreateQueue", run: createQueue, output: true, service: true},
	action{name: "DeleteMessage", run: deleteMessage},
	action{name: "DeleteMessageBatch", run: deleteMessageBatch, output: true},
	action{name: "DeleteQueue", run: deleteQueue},
	action{name: "GetQueueAttributes", run: getQueueAttributes, output: true},
	action{name: "GetQueueUrl", run: getQueueURL, output: true},
	action{name: "ListDeadLetterSourceQueues", run: listDeadLetterSourceQueues, output: true},
	action{name: "ListMessageMoveTasks", run: listMessageMoveTasks, output: true},
	action{name: "ListQueueTags", run: listQueueTags, output: true},
	action{name: "ListQueues", run: listQueues, output: true, service: true},
	action{name: "PurgeQueue", run: purgeQueue},
	action{name: "ReceiveMessage", run: receiveMessage, output: true},
	action{name: "RemovePermission", run: removePermission},
	action{name: "SendMessage", run: sendMessage, output: true},
	action{name: "SendMessageBatch", run: sendMessageBatch, output: true},
	action{name: "SetQueueAttributes", run: setQueueAttributes},
	action{name: "StartMessageMoveTask", run: startMessageMoveTask, output: true},
	action{name: "TagQueue", run: tagQueue},
	action{name: "UntagQueue", run: untagQueue},
)

// stsActions are the actions of STS that clients ask of any endpoint. They are
// in the Query protocol only.
var stsActions = table(stsNamespace,
	action{name: "GetCallerIdentity", run: getCallerIdentity, output: true},
)

func table(namespace string, actions ...action) map[string]*action {
	byName := make(map[string]*action, len(actions))
	for _, a := range actions {
		a.namespace = namespace
		byName[a.name] = &a
	}
	return byName
}

// queryAction finds an action of the Query protocol; nil if there is none.
func queryAction(name string) *action {
	if a := sqsActions[name]; a != nil {
		return a
	}
	return stsActions[name]
}

// namespaceOf returns the XML namespace of an error of the action; nil stands
// for none in particular.
func namespaceOf(a *action) string {
	if a == nil {
		return sqsNamespace
	}
	return a.namespace
}

// getCallerIdentity tells clients the account that their calls are made in.
func getCallerIdentity(r *request) error {
	r.out.Text("Arn", "arn:aws:iam::"+r.caller.account+":root")
	r.out.Text("UserId", r.caller.account)
	r.out.Text("Account", r.caller.account)
	return nil
}
