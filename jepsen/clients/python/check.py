"""Checks an SQS endpoint through boto3: check.py NAME ENDPOINT.

NAME is printed on the last line. With botocore before 1.31.81 the same program
speaks AWS Query; later ones speak AWS JSON.
"""

import hashlib
import json
import sys
import threading
import time
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


def expect(what, condition):
    check(what, bool(condition), True)


def refused(what, code, call, **members):
    """The call must fail with a code, or one of several; returns the exception."""
    try:
        call(**members)
    except ClientError as error:
        expect(f"{what}: {error.response['Error']['Code']}, want {code}", error.response["Error"]["Code"] in code.split(" "))
        return error
    sys.exit(f"{name}: {what}: succeeded, want {code}")


sqs = boto3.client(
    "sqs",
    endpoint_url=endpoint,
    region_name="us-east-1",
    aws_access_key_id="test",
    aws_secret_access_key="test",
    config=Config(retries={"max_attempts": 1}),
)
protocol = sqs.meta.service_model.metadata["protocol"]
prefix = f"boto3-{uuid.uuid4().hex[:8]}"


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def lifecycle():
    url = sqs.create_queue(QueueName=f"{prefix}-life", Attributes={"VisibilityTimeout": "30"})["QueueUrl"]
    check("create again", sqs.create_queue(QueueName=f"{prefix}-life")["QueueUrl"], url)
    check("get queue url", sqs.get_queue_url(QueueName=f"{prefix}-life")["QueueUrl"], url)
    body = 'héllo <&> "quoted"\r\n\ttab 𝄞'
    sent = sqs.send_message(QueueUrl=url, MessageBody=body)
    check("digest of the body", sent["MD5OfMessageBody"], md5(body))
    got = sqs.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"]
    check("messages", len(got), 1)
    check("body", got[0]["Body"], body)
    check("id", got[0]["MessageId"], sent["MessageId"])
    check("receive count", got[0]["Attributes"]["ApproximateReceiveCount"], "1")
    expect("hidden", "Messages" not in sqs.receive_message(QueueUrl=url))
    handle = got[0]["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    again = sqs.receive_message(QueueUrl=url, AttributeNames=["ApproximateReceiveCount"])["Messages"][0]
    check("second receive count", again["Attributes"], {"ApproximateReceiveCount": "2"})
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    sqs.delete_queue(QueueUrl=url)
    refused("deleted queue", "AWS.SimpleQueueService.NonExistentQueue", sqs.get_queue_attributes, QueueUrl=url)


def batches():
    url = sqs.create_queue(QueueName=f"{prefix}-batch")["QueueUrl"]
    entries = [{"Id": str(i), "MessageBody": f"body {i}"} for i in range(9)] + [{"Id": "bad", "MessageBody": "x\x01"}]
    out = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    check("sent", [e["Id"] for e in out["Successful"]], [str(i) for i in range(9)])
    check("digests", [e["MD5OfMessageBody"] for e in out["Successful"]], [md5(f"body {i}") for i in range(9)])
    check("failed", [(e["Id"], e["Code"], e["SenderFault"]) for e in out["Failed"]], [("bad", "InvalidMessageContents", True)])
    got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    check("received", sorted(m["Body"] for m in got), [f"body {i}" for i in range(9)])
    changes = [{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 60} for i, m in enumerate(got)]
    changes.append({"Id": "bad", "ReceiptHandle": "garbage", "VisibilityTimeout": 60})
    out = sqs.change_message_visibility_batch(QueueUrl=url, Entries=changes)
    check("changed", len(out["Successful"]), 9)
    check("not changed", [(e["Id"], e["Code"]) for e in out["Failed"]], [("bad", "ReceiptHandleIsInvalid")])
    out = sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got)])
    check("deleted", len(out["Successful"]), 9)
    expect("none failed", not out.get("Failed"))
    # A form cannot tell an empty list from none.
    empty = "AWS.SimpleQueueService.EmptyBatchRequest" + ("" if protocol == "json" else " MissingParameter")
    refused("empty batch", empty, sqs.send_message_batch, QueueUrl=url, Entries=[])
    refused("eleven entries", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", sqs.send_message_batch, QueueUrl=url,
            Entries=[{"Id": str(i), "MessageBody": "x"} for i in range(11)])
    refused("repeated ids", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", sqs.send_message_batch, QueueUrl=url,
            Entries=[{"Id": "1", "MessageBody": "x"}] * 2)


def attributes():
    url = sqs.create_queue(QueueName=f"{prefix}-attributes")["QueueUrl"]
    raw = bytes(range(256))
    sent = sqs.send_message(
        QueueUrl=url,
        MessageBody="x",
        MessageAttributes={
            "foo.one": {"DataType": "String", "StringValue": "é\r\n<1>"},
            "foo.two": {"DataType": "Number.int", "StringValue": "2"},
            "raw": {"DataType": "Binary.png", "BinaryValue": raw},
        },
        MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}},
    )
    expect("digest of the attributes", len(sent["MD5OfMessageAttributes"]) == 32)
    expect("digest of the system attributes", len(sent["MD5OfMessageSystemAttributes"]) == 32)

    def receive(*names):
        return sqs.receive_message(QueueUrl=url, VisibilityTimeout=0, AttributeNames=["All"], MessageAttributeNames=list(names))["Messages"][0]

    m = receive("All")
    check("binary attribute", m["MessageAttributes"]["raw"], {"DataType": "Binary.png", "BinaryValue": raw})
    check("string attribute", m["MessageAttributes"]["foo.one"]["StringValue"], "é\r\n<1>")
    check("digest of all", m["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"])
    check("trace header", m["Attributes"]["AWSTraceHeader"], "Root=1-5759e988-bd862e3fe1be46a994272793")
    check("by prefix", sorted(receive("foo.*")["MessageAttributes"]), ["foo.one", "foo.two"])
    check("by name", sorted(receive("raw", "nope")["MessageAttributes"]), ["raw"])
    expect("no names", "MessageAttributes" not in receive())


def polls():
    url = sqs.create_queue(QueueName=f"{prefix}-poll")["QueueUrl"]
    start = time.monotonic()
    expect("empty poll", "Messages" not in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1))
    expect("poll lasted", time.monotonic() - start > 0.9)
    timer = threading.Timer(1, lambda: sqs.send_message(QueueUrl=url, MessageBody="late"))
    timer.start()
    start = time.monotonic()
    check("woken poll", sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"][0]["Body"], "late")
    expect("woken early", time.monotonic() - start < 10)
    timer.join()
    sqs.send_message(QueueUrl=url, MessageBody="delayed", DelaySeconds=3)
    expect("delayed", "Messages" not in sqs.receive_message(QueueUrl=url))
    check("after the delay", sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"][0]["Body"], "delayed")


def queue_attributes():
    url = sqs.create_queue(QueueName=f"{prefix}-set")["QueueUrl"]
    target = sqs.create_queue(QueueName=f"{prefix}-letters")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=target, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":3}}'
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7", "RedrivePolicy": policy})
    got = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    check("set", (got["VisibilityTimeout"], got["RedrivePolicy"], got["MaximumMessageSize"]), ("7", policy, "1048576"))
    check("sources", sqs.list_dead_letter_source_queues(QueueUrl=target)["queueUrls"], [url])
    sqs.tag_queue(QueueUrl=url, Tags={"a": "1", "b": ""})
    check("tags", sqs.list_queue_tags(QueueUrl=url)["Tags"], {"a": "1", "b": ""})
    sqs.untag_queue(QueueUrl=url, TagKeys=["a", "b"])
    expect("no tags", "Tags" not in sqs.list_queue_tags(QueueUrl=url))
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.purge_queue(QueueUrl=url)
    expect("purged", "Messages" not in sqs.receive_message(QueueUrl=url))
    error = refused("purge again", "AWS.SimpleQueueService.PurgeQueueInProgress", sqs.purge_queue, QueueUrl=url)
    check("status of a purge in progress", error.response["ResponseMetadata"]["HTTPStatusCode"], 403)
    refused("unknown attribute", "InvalidAttributeName", sqs.set_queue_attributes, QueueUrl=url, Attributes={"Foobar": "1"})
    refused("value out of range", "InvalidAttributeValue", sqs.set_queue_attributes, QueueUrl=url, Attributes={"VisibilityTimeout": "43201"})


def errors():
    missing = endpoint + "/000000000000/" + prefix + "-nope"
    try:
        sqs.send_message(QueueUrl=missing, MessageBody="x")
        sys.exit(f"{name}: a missing queue took a message")
    except sqs.exceptions.QueueDoesNotExist as error:
        check("code", error.response["Error"]["Code"], "AWS.SimpleQueueService.NonExistentQueue")
        if protocol == "json":
            check("modeled code", error.response["Error"]["QueryErrorCode"], "QueueDoesNotExist")
    url = sqs.create_queue(QueueName=f"{prefix}-errors")["QueueUrl"]
    try:
        sqs.create_queue(QueueName=f"{prefix}-errors", Attributes={"DelaySeconds": "5"})
        sys.exit(f"{name}: a queue was made twice with different attributes")
    except sqs.exceptions.QueueNameExists:
        expect("QueueNameExists", True)
    try:
        sqs.delete_message(QueueUrl=url, ReceiptHandle="garbage")
        sys.exit(f"{name}: a garbage handle was accepted")
    except sqs.exceptions.ReceiptHandleIsInvalid as error:
        check("status", error.response["ResponseMetadata"]["HTTPStatusCode"], 404)
    refused("empty body", "MissingParameter", sqs.send_message, QueueUrl=url, MessageBody="")
    refused("too long", "InvalidParameterValue", sqs.send_message, QueueUrl=url, MessageBody="é" * (1 << 19) + "a")
    body = "é" * (1 << 19)
    check("1 MiB", sqs.send_message(QueueUrl=url, MessageBody=body)["MD5OfMessageBody"], md5(body))
    check("1 MiB back", sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"], body)


def pages():
    made = sorted(sqs.create_queue(QueueName=f"{prefix}-page-{i}")["QueueUrl"] for i in range(7))
    paginator = sqs.get_paginator("list_queues")
    found = [page.get("QueueUrls", []) for page in paginator.paginate(QueueNamePrefix=f"{prefix}-page", PaginationConfig={"PageSize": 3})]
    check("pages", [len(page) for page in found], [3, 3, 1])
    check("all pages", sorted(sum(found, [])), made)
    expect("no queue", "QueueUrls" not in sqs.list_queues(QueueNamePrefix=f"{prefix}-none"))
    for url in made:
        sqs.delete_queue(QueueUrl=url)


def resource():
    """The object interface of boto3."""
    service = boto3.resource("sqs", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    queue = service.create_queue(QueueName=f"{prefix}-resource")
    queue.send_message(MessageBody="x")
    for message in queue.receive_messages(WaitTimeSeconds=5):
        check("resource body", message.body, "x")
        message.delete()
    queue.reload()
    check("resource count", queue.attributes["ApproximateNumberOfMessages"], "0")
    queue.delete()


def fifo():
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = sqs.create_queue(QueueName=f"{prefix}-order.fifo", Attributes=attributes)["QueueUrl"]
    entries = [
        {"Id": f"e{i}", "MessageBody": f"{i}", "MessageGroupId": f"g{i % 2}", "MessageDeduplicationId": f"d{i}"} for i in range(8)
    ]
    sent = sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    numbers = [int(entry["SequenceNumber"]) for entry in sent]
    check("sequence numbers rise", numbers, sorted(set(numbers)))
    again = sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    pick = lambda results: [(r["Id"], r["MessageId"], r["SequenceNumber"]) for r in results]
    check("a batch sent again", pick(again), pick(sent))
    ask = dict(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], ReceiveRequestAttemptId="attempt")
    got = sqs.receive_message(**ask)["Messages"]
    repeated = sqs.receive_message(**ask)["Messages"]
    check("an attempt again", [m["ReceiptHandle"] for m in repeated], [m["ReceiptHandle"] for m in got])
    for group in ("g0", "g1"):
        bodies = [m["Body"] for m in got if m["Attributes"]["MessageGroupId"] == group]
        check(f"order of {group}", bodies, [f"{i}" for i in range(8) if i % 2 == int(group[1])])
    check("sequence", sorted(int(m["Attributes"]["SequenceNumber"]) for m in got), numbers)
    sqs.send_message(QueueUrl=url, MessageBody="later", MessageGroupId="g0")
    expect("the group is locked", "Messages" not in sqs.receive_message(QueueUrl=url))
    changed = sqs.change_message_visibility_batch(
        QueueUrl=url, Entries=[{"Id": m["Body"], "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0} for m in got]
    )
    check("released", len(changed["Successful"]), 8)
    back = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    expired = sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": m["Body"], "ReceiptHandle": m["ReceiptHandle"]} for m in got])
    check("old handles", [f["Code"] for f in expired["Failed"]], ["ReceiptHandleIsInvalid"] * 8)
    sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": m["Body"], "ReceiptHandle": m["ReceiptHandle"]} for m in back[:9]])
    rest = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"])
    check("left", sum(int(n) for n in rest["Attributes"].values()), 0)
    refused("no group", "MissingParameter", sqs.send_message, QueueUrl=url, MessageBody="x")


def dead_letters():
    """Two receives, then the dead-letter queue, then back by a move task."""
    dead = sqs.create_queue(QueueName=f"{prefix}-mail")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    url = sqs.create_queue(QueueName=f"{prefix}-mail-source", Attributes={"RedrivePolicy": policy, "VisibilityTimeout": "0"})["QueueUrl"]
    check("sources", sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"], [url])
    sqs.send_message(QueueUrl=url, MessageBody="x")
    check("first", len(sqs.receive_message(QueueUrl=url)["Messages"]), 1)
    expect("moved", "Messages" not in sqs.receive_message(QueueUrl=url))
    if not hasattr(sqs, "start_message_move_task") or protocol != "json":
        return  # the old model of AWS Query has other names for lists
    sqs.start_message_move_task(SourceArn=arn)
    for _ in range(100):
        task = sqs.list_message_move_tasks(SourceArn=arn)["Results"][0]
        if task["Status"] == "COMPLETED":
            break
        time.sleep(0.1)
    check("task", (task["Status"], task["ApproximateNumberOfMessagesMoved"]), ("COMPLETED", 1))
    back = sqs.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"][0]
    check("back", (back["Body"], back["Attributes"]["ApproximateReceiveCount"]), ("x", "1"))


for part in (lifecycle, batches, attributes, polls, queue_attributes, errors, pages, resource, fifo, dead_letters):
    part()
identity = boto3.client("sts", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test").get_caller_identity()
check("caller identity", identity["Account"], "000000000000")
print(f"{name} (botocore {botocore.__version__}, {protocol}): ok {checks} checks")
