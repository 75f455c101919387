#!/usr/bin/env bash
# Checks an SNS endpoint, and the SQS beside it, through the AWS CLI: check_sns.sh AWS ENDPOINT.
set -euo pipefail
aws=$1 endpoint=$2
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1
export AWS_PAGER="" AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
checks=0
prefix=cli-sns-$$-$RANDOM

call() { "$aws" --endpoint-url "$endpoint" --output text "$@"; }
sns() { call sns "$@"; }
sqs() { call sqs "$@"; }

check() { # what got want
	if [[ $2 != "$3" ]]; then
		echo "aws cli for sns: $1: got '$2', want '$3'" >&2
		exit 1
	fi
	checks=$((checks + 1))
}

refused() { # what code call...
	local what=$1 code=$2 said
	shift 2
	if said=$(sns "$@" 2>&1); then
		echo "aws cli for sns: $what: succeeded, want $code" >&2
		exit 1
	fi
	[[ $said == *"($code)"* ]] || { echo "aws cli for sns: $what: got '$said', want $code" >&2; exit 1; }
	checks=$((checks + 1))
}

arn_of() { sqs get-queue-attributes --queue-url "$1" --attribute-names QueueArn --query Attributes.QueueArn; }

topic=$(sns create-topic --name "$prefix" --tags Key=team,Value=a --query TopicArn)
check "topic" "$topic" "arn:aws:sns:us-east-1:000000000000:$prefix"
plain=$(sqs create-queue --queue-name "$prefix-plain" --query QueueUrl)
raw=$(sqs create-queue --queue-name "$prefix-raw" --query QueueUrl)
subscription=$(sns subscribe --topic-arn "$topic" --protocol sqs --notification-endpoint "$(arn_of "$plain")" --return-subscription-arn --query SubscriptionArn)
check "subscription" "${subscription%:*}" "$topic"
sns subscribe --topic-arn "$topic" --protocol sqs --notification-endpoint "$(arn_of "$raw")" \
	--attributes '{"RawMessageDelivery":"true","FilterPolicy":"{\"kind\":[\"raw\"]}"}' >/dev/null
id=$(sns publish --topic-arn "$topic" --message 'héllo <&>' --subject hello --query MessageId)
body=$(sqs receive-message --queue-url "$plain" --wait-time-seconds 5 --query 'Messages[0].Body')
check "envelope" "$(python3 -c 'import json, sys; e = json.loads(sys.argv[1]); print(e["MessageId"], e["Subject"], e["Message"])' "$body")" "$id hello héllo <&>"
check "filtered out" "$(sqs receive-message --queue-url "$raw" --query Messages)" None
sns publish --topic-arn "$topic" --message raw --message-attributes '{"kind":{"DataType":"String","StringValue":"raw"}}' >/dev/null
got=$(sqs receive-message --queue-url "$raw" --wait-time-seconds 5 --message-attribute-names All --query 'Messages[0].[Body,MessageAttributes.kind.StringValue]')
check "raw" "$got" "raw	raw"
check "batch" "$(sns publish-batch --topic-arn "$topic" --publish-batch-request-entries Id=a,Message=1 Id=b,Message=2 --query 'Successful[].Id')" "a	b"

sns set-topic-attributes --topic-arn "$topic" --attribute-name DisplayName --attribute-value "Hello"
check "display name" "$(sns get-topic-attributes --topic-arn "$topic" --query Attributes.DisplayName)" Hello
check "confirmed" "$(sns get-topic-attributes --topic-arn "$topic" --query Attributes.SubscriptionsConfirmed)" 2
sns set-subscription-attributes --subscription-arn "$subscription" --attribute-name FilterPolicy --attribute-value '{"a":["b"]}'
check "filter policy" "$(sns get-subscription-attributes --subscription-arn "$subscription" --query Attributes.FilterPolicy)" '{"a":["b"]}'
sns tag-resource --resource-arn "$topic" --tags Key=stage,Value=x
sns untag-resource --resource-arn "$topic" --tag-keys team
check "tags" "$(sns list-tags-for-resource --resource-arn "$topic" --query 'Tags[].Key')" stage
check "listed" "$(sns list-topics --query "Topics[?TopicArn=='$topic'] | length(@)")" 1
check "subscriptions" "$(sns list-subscriptions-by-topic --topic-arn "$topic" --query 'length(Subscriptions)')" 2
check "sandbox" "$(sns get-sms-sandbox-account-status --query IsInSandbox)" True

refused "no topic" NotFound publish --topic-arn "$topic-nope" --message x
refused "no arn" InvalidParameter publish --topic-arn nonsense --message x
refused "topic name" InvalidParameter create-topic --name 'a b'
sns unsubscribe --subscription-arn "$subscription"
sns unsubscribe --subscription-arn "$subscription"
sns delete-topic --topic-arn "$topic"
sns delete-topic --topic-arn "$topic"
refused "deleted topic" NotFound get-topic-attributes --topic-arn "$topic"
echo "aws cli for sns ($("$aws" --version 2>&1 | cut -d' ' -f1)): ok $checks checks"
