#!/usr/bin/env bash
# Checks an SQS endpoint through the AWS CLI: check.sh AWS ENDPOINT.
set -euo pipefail
aws=$1 endpoint=$2
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1
export AWS_PAGER="" AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
checks=0
prefix=cli-$$-$RANDOM
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

sqs() { "$aws" --endpoint-url "$endpoint" --output text sqs "$@"; }

check() { # what got want
	if [[ $2 != "$3" ]]; then
		echo "aws cli: $1: got '$2', want '$3'" >&2
		exit 1
	fi
	checks=$((checks + 1))
}

refused() { # what code call...
	local what=$1 code=$2 said
	shift 2
	if said=$(sqs "$@" 2>&1); then
		echo "aws cli: $what: succeeded, want $code" >&2
		exit 1
	fi
	[[ $said == *"($code)"* ]] || { echo "aws cli: $what: got '$said', want $code" >&2; exit 1; }
	checks=$((checks + 1))
}

url=$(sqs create-queue --queue-name "$prefix" --attributes VisibilityTimeout=60 --tags team=a --query QueueUrl)
check "queue url" "$(sqs get-queue-url --queue-name "$prefix" --query QueueUrl)" "$url"
check "visibility" "$(sqs get-queue-attributes --queue-url "$url" --attribute-names VisibilityTimeout --query Attributes.VisibilityTimeout)" 60
check "tag" "$(sqs list-queue-tags --queue-url "$url" --query Tags.team)" a

# One message, with attributes of each kind.
# The CLI takes the text of a BinaryValue for its bytes, and shows bytes in base64.
text=$(head -c 48 /dev/urandom | base64 -w0)
raw=$(printf %s "$text" | base64 -w0)
cat >"$scratch/attributes" <<END
{"foo.one": {"DataType": "String", "StringValue": "1"}, "foo.two": {"DataType": "Number", "StringValue": "2"},
 "raw": {"DataType": "Binary", "BinaryValue": "$text"}}
END
id=$(sqs send-message --queue-url "$url" --message-body 'héllo <&>' --message-attributes "file://$scratch/attributes" --query MessageId)
"$aws" --endpoint-url "$endpoint" --output json sqs receive-message --queue-url "$url" --visibility-timeout 0 \
	--attribute-names All --message-attribute-names 'foo.*' >"$scratch/filtered"
check "filtered attributes" "$(grep -c '"foo\.' "$scratch/filtered") $(grep -c '"raw"' "$scratch/filtered" || true)" "2 0"
got=$(sqs receive-message --queue-url "$url" --message-attribute-names All --query 'Messages[0].[MessageId,Body,MessageAttributes.raw.BinaryValue]')
check "message" "$got" "$id	héllo <&>	$raw"
check "hidden" "$(sqs receive-message --queue-url "$url" --query 'Messages')" None
check "in flight" "$(sqs get-queue-attributes --queue-url "$url" --attribute-names All --query Attributes.ApproximateNumberOfMessagesNotVisible)" 1

# A long poll that a send ends.
(sleep 2 && sqs send-message --queue-url "$url" --message-body late >/dev/null) &
got=$(sqs receive-message --queue-url "$url" --wait-time-seconds 20 --query 'Messages[0].[Body,ReceiptHandle]')
wait
check "woken poll" "${got%%	*}" late
handle=${got##*	}
sqs change-message-visibility --queue-url "$url" --receipt-handle "$handle" --visibility-timeout 0
sqs delete-message --queue-url "$url" --receipt-handle "$handle"
sqs delete-message --queue-url "$url" --receipt-handle "$handle"
check "after the delete" "$(sqs receive-message --queue-url "$url" --query Messages)" None

# Batches.
sent=$(sqs send-message-batch --queue-url "$url" --entries '[{"Id":"a","MessageBody":"1"},{"Id":"b","MessageBody":"2","DelaySeconds":901}]' \
	--query '[Successful[0].Id,Failed[0].Id,Failed[0].Code]')
check "batch" "$sent" "a	b	InvalidParameterValue"
handle=$(sqs receive-message --queue-url "$url" --max-number-of-messages 10 --query 'Messages[0].ReceiptHandle')
check "visibility batch" "$(sqs change-message-visibility-batch --queue-url "$url" --entries "Id=a,ReceiptHandle=$handle,VisibilityTimeout=30" "Id=b,ReceiptHandle=garbage,VisibilityTimeout=30" \
	--query '[Successful[0].Id,Failed[0].Code]')" "a	ReceiptHandleIsInvalid"
check "delete batch" "$(sqs delete-message-batch --queue-url "$url" --entries "Id=a,ReceiptHandle=$handle" --query 'Successful[0].Id')" a

# Attributes, tags, lists.
sqs set-queue-attributes --queue-url "$url" --attributes DelaySeconds=5
check "delay" "$(sqs get-queue-attributes --queue-url "$url" --attribute-names DelaySeconds --query Attributes.DelaySeconds)" 5
sqs tag-queue --queue-url "$url" --tags stage=x
sqs untag-queue --queue-url "$url" --tag-keys team
check "tags" "$(sqs list-queue-tags --queue-url "$url" --query 'keys(Tags)')" stage
for i in 1 2; do sqs create-queue --queue-name "$prefix-page-$i" >/dev/null; done
# In text form the CLI applies the query to each page.
check "pages" "$(sqs list-queues --queue-name-prefix "$prefix" --page-size 1 --query 'length(QueueUrls)' | tr '\n' ' ')" "1 1 1 "
sqs purge-queue --queue-url "$url"

# Errors as the CLI shows them.
refused "purge again" AWS.SimpleQueueService.PurgeQueueInProgress purge-queue --queue-url "$url"
refused "no such queue" AWS.SimpleQueueService.NonExistentQueue send-message --queue-url "$endpoint/000000000000/$prefix-nope" --message-body x
refused "garbage handle" ReceiptHandleIsInvalid delete-message --queue-url "$url" --receipt-handle garbage
refused "other attributes" QueueAlreadyExists create-queue --queue-name "$prefix" --attributes DelaySeconds=7
for i in 1 2; do sqs delete-queue --queue-url "$endpoint/000000000000/$prefix-page-$i"; done
sqs delete-queue --queue-url "$url"
refused "deleted queue" AWS.SimpleQueueService.NonExistentQueue get-queue-url --queue-name "$prefix"
check "identity" "$("$aws" --endpoint-url "$endpoint" --output text sts get-caller-identity --query Account)" 000000000000
echo "aws cli ($("$aws" --version 2>&1 | cut -d' ' -f1)): ok $checks checks"
