"""Checks an SNS endpoint, and the SQS beside it, through boto3: check_sns.py NAME ENDPOINT."""

import json
import sys
import uuid

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import ClientError

name, endpoint = sys.argv[1], sys.argv[2]
checks = 0


def check(what, got, want):
    global checks
    if got != want:
        sys.exit(f"{name}: {what}: got {got!r}, want {want!r}")
    checks += 1


def refused(what, code, call, **members):
    """The call must fail with the SDK's exception for a code."""
    try:
        call(**members)
    except ClientError as error:
        check(what, error.response["Error"]["Code"], code)
        return error
    sys.exit(f"{name}: {what}: succeeded, want {code}")


def client(service):
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"max_attempts": 1}),
    )


sns, sqs = client("sns"), client("sqs")
prefix = f"boto3-{uuid.uuid4().hex[:8]}"


def queue(label, **attributes):
    url = sqs.create_queue(QueueName=f"{prefix}-{label}", Attributes=attributes)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def take(url, count):
    """Receives so many messages and deletes them; there must be no more."""
    got = []
    while len(got) < count:
        messages = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5, AttributeNames=["All"], MessageAttributeNames=["All"]
        ).get("Messages")
        if not messages:
            break
        for m in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
        got += messages
    check(f"messages of {url}", len(got), count)
    check(f"no more in {url}", sqs.receive_message(QueueUrl=url).get("Messages", []), [])
    return got


def deliveries():
    topic = sns.create_topic(Name=f"{prefix}-orders", Tags=[{"Key": "team", "Value": "a"}])["TopicArn"]
    check("create again", sns.create_topic(Name=f"{prefix}-orders")["TopicArn"], topic)
    url, arn = queue("orders")
    raw_url, raw_arn = queue("raw")
    gold_url, gold_arn = queue("gold")
    body_url, body_arn = queue("body")
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    raw = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=raw_arn, Attributes={"RawMessageDelivery": "true"})["SubscriptionArn"]
    gold = sns.subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=gold_arn, Attributes={"FilterPolicy": json.dumps({"customer": ["gold"]})}, ReturnSubscriptionArn=True
    )["SubscriptionArn"]
    sns.subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=body_arn,
        Attributes={"FilterPolicyScope": "MessageBody", "FilterPolicy": json.dumps({"price": [{"numeric": [">", 100]}]})},
    )
    check("filter policy", sns.get_subscription_attributes(SubscriptionArn=gold)["Attributes"]["FilterPolicy"], '{"customer": ["gold"]}')
    attributes = {
        "customer": {"DataType": "String", "StringValue": "gold"},
        "count": {"DataType": "Number", "StringValue": "3"},
        "blob": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
    }
    message = '{"price": 101, "text": "héllo <&> 𝄞"}'
    published = sns.publish(TopicArn=topic, Message=message, Subject="an order", MessageAttributes=attributes)
    envelope = json.loads(take(url, 1)[0]["Body"])
    check("envelope", [envelope[k] for k in ("Type", "MessageId", "TopicArn", "Subject", "Message")],
          ["Notification", published["MessageId"], topic, "an order", message])
    check("attribute in the envelope", envelope["MessageAttributes"]["count"], {"Type": "Number", "Value": "3"})
    m = take(raw_url, 1)[0]
    check("raw body", m["Body"], message)
    check("raw attribute", m["MessageAttributes"]["blob"]["BinaryValue"], bytes(range(256)))
    take(gold_url, 1)
    take(body_url, 1)
    out = sns.publish_batch(
        TopicArn=topic,
        PublishBatchRequestEntries=[
            {"Id": "a", "Message": "1"},
            {"Id": "b", "Message": "2", "Subject": "two\nlines"},
            {"Id": "c", "Message": "3", "MessageAttributes": {"customer": {"DataType": "String", "StringValue": "gold"}}},
        ],
    )
    check("batch", [e["Id"] for e in out["Successful"]], ["a", "c"])
    check("failed", [(e["Id"], e["Code"], e["SenderFault"]) for e in out["Failed"]], [("b", "InvalidParameter", True)])
    check("raw batch", sorted(m["Body"] for m in take(raw_url, 2)), ["1", "3"])
    check("gold batch", [json.loads(m["Body"])["Message"] for m in take(gold_url, 1)], ["3"])
    take(url, 2)
    take(body_url, 0)
    sns.set_subscription_attributes(SubscriptionArn=raw, AttributeName="RawMessageDelivery", AttributeValue="false")
    sns.unsubscribe(SubscriptionArn=gold)
    listed = [s for page in sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic) for s in page["Subscriptions"]]
    check("subscriptions", sorted(s["Endpoint"] for s in listed), sorted([arn, raw_arn, body_arn]))
    sns.delete_topic(TopicArn=topic)
    refused("deleted topic", "NotFound", sns.publish, TopicArn=topic, Message="x")


def fifo():
    topic = sns.create_topic(Name=f"{prefix}.fifo", Attributes={"FifoTopic": "true", "ContentBasedDeduplication": "true"})["TopicArn"]
    url, arn = queue("fifo.fifo", FifoQueue="true")
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    first = sns.publish(TopicArn=topic, Message="a", MessageGroupId="g")
    again = sns.publish(TopicArn=topic, Message="a", MessageGroupId="g")
    check("duplicate", [again[k] for k in ("MessageId", "SequenceNumber")], [first[k] for k in ("MessageId", "SequenceNumber")])
    sns.publish(TopicArn=topic, Message="b", MessageGroupId="g")
    check("order", [(m["Body"], m["Attributes"]["MessageGroupId"]) for m in take(url, 2)], [("a", "g"), ("b", "g")])


def dead_letters():
    topic = sns.create_topic(Name=f"{prefix}-dead")["TopicArn"]
    url, arn = queue("gone")
    dead_url, dead_arn = queue("dead")
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RedrivePolicy": json.dumps({"deadLetterTargetArn": dead_arn})})
    sqs.delete_queue(QueueUrl=url)
    sns.publish(TopicArn=topic, Message="lost?")
    check("dead letter", json.loads(take(dead_url, 1)[0]["Body"])["Message"], "lost?")


def attributes_and_tags():
    topic = sns.create_topic(Name=f"{prefix}-attributes", Attributes={"DisplayName": "A & B"})["TopicArn"]
    got = sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    check("display name", got["DisplayName"], "A & B")
    check("policy", json.loads(got["Policy"])["Statement"][0]["Resource"], topic)
    sns.set_topic_attributes(TopicArn=topic, AttributeName="SignatureVersion", AttributeValue="2")
    check("signature version", sns.get_topic_attributes(TopicArn=topic)["Attributes"]["SignatureVersion"], "2")
    sns.tag_resource(ResourceArn=topic, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "é"}])
    sns.untag_resource(ResourceArn=topic, TagKeys=["a"])
    check("tags", sns.list_tags_for_resource(ResourceArn=topic)["Tags"], [{"Key": "b", "Value": "é"}])
    sns.add_permission(TopicArn=topic, Label="L", AWSAccountId=["111122223333"], ActionName=["Publish", "Subscribe"])
    added = json.loads(sns.get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"])["Statement"][-1]
    check("permission", (added["Sid"], added["Action"]), ("L", ["SNS:Publish", "SNS:Subscribe"]))
    sns.remove_permission(TopicArn=topic, Label="L")
    listed = [t["TopicArn"] for page in sns.get_paginator("list_topics").paginate() for t in page["Topics"]]
    check("listed", listed.count(topic), 1)
    check("data protection", sns.get_data_protection_policy(ResourceArn=topic)["DataProtectionPolicy"], "")


def errors():
    topic = sns.create_topic(Name=f"{prefix}-errors")["TopicArn"]
    refused("topic name", "InvalidParameter", sns.create_topic, Name="a b")
    refused("no topic", "NotFound", sns.get_topic_attributes, TopicArn=topic + "x")
    try:
        sns.publish(TopicArn=topic + "x", Message="x")
    except sns.exceptions.NotFoundException:
        check("exception class", True, True)
    refused("empty message", "InvalidParameter", sns.publish, TopicArn=topic, Message="")
    refused("too long", "InvalidParameter", sns.publish, TopicArn=topic, Message="x" * 262145)
    refused("attribute", "ParameterValueInvalid", sns.publish, TopicArn=topic, Message="x",
            MessageAttributes={"a": {"DataType": "Number", "StringValue": "many"}})
    refused("same ids", "BatchEntryIdsNotDistinct", sns.publish_batch, TopicArn=topic,
            PublishBatchRequestEntries=[{"Id": "1", "Message": "x"}] * 2)
    refused("filter policy", "InvalidParameter", sns.subscribe, TopicArn=topic, Protocol="sqs",
            Endpoint="arn:aws:sqs:us-east-1:000000000000:q", Attributes={"FilterPolicy": '{"a": "b"}'})
    refused("tags of no topic", "ResourceNotFound", sns.list_tags_for_resource, ResourceArn=topic + "x")


for part in (deliveries, fifo, dead_letters, attributes_and_tags, errors):
    part()
print(f"{name} for sns (botocore {botocore.__version__}): ok {checks} checks")
