// Checks an SQS endpoint through the AWS SDK for JavaScript v3:
// node check.mjs ENDPOINT. The SDK's MD5 checks are on, as they are by default.
import { createHash, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";
import * as sdk from "@aws-sdk/client-sqs";

const { version } = createRequire(import.meta.url)("@aws-sdk/client-sqs/package.json");
const endpoint = process.argv[2];
const sqs = new sdk.SQSClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
  maxAttempts: 1,
});
const prefix = `js-${randomUUID().slice(0, 8)}`;
let checks = 0;

function check(what, got, want) {
  if (!isDeepStrictEqual(got, want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
  checks++;
}

const call = (action, input) => sqs.send(new sdk[`${action}Command`](input));

/** The call must be refused with the SDK's typed exception, or with a code. */
async function refused(what, kind, action, input) {
  let error;
  try {
    await call(action, input);
  } catch (e) {
    error = e;
  }
  if (error === undefined) throw new Error(`${what}: succeeded, want ${kind.name ?? kind}`);
  if (typeof kind === "string") check(what, error.name, kind);
  else check(`${what}: ${error}`, error instanceof kind, true);
  return error;
}

const md5 = (text) => createHash("md5").update(text).digest("hex");

async function lifecycle() {
  const QueueName = `${prefix}-life`;
  const { QueueUrl } = await call("CreateQueue", { QueueName });
  check("queue url", (await call("GetQueueUrl", { QueueName })).QueueUrl, QueueUrl);
  const MessageBody = 'héllo <&> "quoted"\r\n\ttab 𝄞';
  const sent = await call("SendMessage", { QueueUrl, MessageBody });
  check("digest", sent.MD5OfMessageBody, md5(MessageBody));
  const [m] = (await call("ReceiveMessage", { QueueUrl, MessageSystemAttributeNames: ["All"] })).Messages;
  check("message", [m.Body, m.MessageId, m.Attributes.ApproximateReceiveCount], [MessageBody, sent.MessageId, "1"]);
  check("hidden", (await call("ReceiveMessage", { QueueUrl })).Messages, undefined);
  await call("ChangeMessageVisibility", { QueueUrl, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0 });
  const [again] = (await call("ReceiveMessage", { QueueUrl, MessageSystemAttributeNames: ["ApproximateReceiveCount"] })).Messages;
  check("second receive", again.Attributes, { ApproximateReceiveCount: "2" });
  await call("DeleteMessage", { QueueUrl, ReceiptHandle: again.ReceiptHandle });
  await call("DeleteQueue", { QueueUrl });
  await refused("deleted queue", sdk.QueueDoesNotExist, "SendMessage", { QueueUrl, MessageBody: "x" });
}

async function batches() {
  const { QueueUrl } = await call("CreateQueue", { QueueName: `${prefix}-batch` });
  const Entries = [...Array(9).keys()].map((i) => ({ Id: `${i}`, MessageBody: `body ${i}` }));
  Entries.push({ Id: "bad", MessageBody: "x\u0001" });
  const sent = await call("SendMessageBatch", { QueueUrl, Entries });
  check("sent", sent.Successful.length, 9);
  check("failed", sent.Failed.map((e) => [e.Id, e.Code, e.SenderFault]), [["bad", "InvalidMessageContents", true]]);
  const { Messages } = await call("ReceiveMessage", { QueueUrl, MaxNumberOfMessages: 10 });
  check("bodies", Messages.map((m) => m.Body).sort(), [...Array(9).keys()].map((i) => `body ${i}`));
  const changed = await call("ChangeMessageVisibilityBatch", {
    QueueUrl,
    Entries: [
      { Id: "a", ReceiptHandle: Messages[0].ReceiptHandle, VisibilityTimeout: 60 },
      { Id: "b", ReceiptHandle: "garbage", VisibilityTimeout: 60 },
    ],
  });
  check("changed", [changed.Successful[0].Id, changed.Failed[0].Code], ["a", "ReceiptHandleIsInvalid"]);
  const deleted = await call("DeleteMessageBatch", {
    QueueUrl,
    Entries: Messages.map((m, i) => ({ Id: `${i}`, ReceiptHandle: m.ReceiptHandle })),
  });
  check("deleted", [deleted.Successful.length, deleted.Failed], [9, undefined]);
  await refused("empty batch", sdk.EmptyBatchRequest, "SendMessageBatch", { QueueUrl, Entries: [] });
  await refused("repeated ids", sdk.BatchEntryIdsNotDistinct, "SendMessageBatch", {
    QueueUrl,
    Entries: [{ Id: "1", MessageBody: "x" }, { Id: "1", MessageBody: "y" }],
  });
  await refused("too many entries", sdk.TooManyEntriesInBatchRequest, "SendMessageBatch", {
    QueueUrl,
    Entries: [...Array(11).keys()].map((i) => ({ Id: `${i}`, MessageBody: "x" })),
  });
}

async function attributes() {
  const { QueueUrl } = await call("CreateQueue", { QueueName: `${prefix}-attributes` });
  const raw = Uint8Array.from(Array(256).keys());
  const sent = await call("SendMessage", {
    QueueUrl,
    MessageBody: "x",
    MessageAttributes: {
      "foo.one": { DataType: "String", StringValue: "é\r\n<1>" },
      "foo.two": { DataType: "Number.int", StringValue: "2" },
      raw: { DataType: "Binary.png", BinaryValue: raw },
    },
    MessageSystemAttributes: { AWSTraceHeader: { DataType: "String", StringValue: "Root=1-5759e988-bd862e3fe1be46a994272793" } },
  });
  const receive = async (...names) => (await call("ReceiveMessage", { QueueUrl, VisibilityTimeout: 0, MessageAttributeNames: names })).Messages[0];
  const m = await receive("All");
  check("binary", Buffer.from(m.MessageAttributes.raw.BinaryValue), Buffer.from(raw));
  check("string", m.MessageAttributes["foo.one"].StringValue, "é\r\n<1>");
  check("digest", m.MD5OfMessageAttributes, sent.MD5OfMessageAttributes);
  check("by prefix", Object.keys((await receive("foo.*")).MessageAttributes).sort(), ["foo.one", "foo.two"]);
  check("no names", (await receive()).MessageAttributes, undefined);
}

async function polls() {
  const { QueueUrl } = await call("CreateQueue", { QueueName: `${prefix}-poll` });
  let start = performance.now();
  check("empty poll", (await call("ReceiveMessage", { QueueUrl, WaitTimeSeconds: 1 })).Messages, undefined);
  check("poll lasted", performance.now() - start > 900, true);
  start = performance.now();
  const poll = call("ReceiveMessage", { QueueUrl, WaitTimeSeconds: 20 });
  setTimeout(() => call("SendMessage", { QueueUrl, MessageBody: "late" }), 1000);
  check("woken poll", (await poll).Messages[0].Body, "late");
  check("woken early", performance.now() - start < 10_000, true);
}

async function queueAttributes() {
  const { QueueUrl } = await call("CreateQueue", { QueueName: `${prefix}-set`, tags: { a: "1" } });
  await call("SetQueueAttributes", { QueueUrl, Attributes: { VisibilityTimeout: "7" } });
  const got = (await call("GetQueueAttributes", { QueueUrl, AttributeNames: ["All"] })).Attributes;
  check("set", [got.VisibilityTimeout, got.MaximumMessageSize, got.SqsManagedSseEnabled], ["7", "1048576", "true"]);
  check("tags", (await call("ListQueueTags", { QueueUrl })).Tags, { a: "1" });
  await call("UntagQueue", { QueueUrl, TagKeys: ["a"] });
  check("no tags", (await call("ListQueueTags", { QueueUrl })).Tags, undefined);
  await call("SendMessage", { QueueUrl, MessageBody: "x" });
  await call("PurgeQueue", { QueueUrl });
  check("purged", (await call("ReceiveMessage", { QueueUrl })).Messages, undefined);
  await refused("purge again", sdk.PurgeQueueInProgress, "PurgeQueue", { QueueUrl });
  await refused("unknown attribute", sdk.InvalidAttributeName, "SetQueueAttributes", { QueueUrl, Attributes: { Foobar: "1" } });
}

async function errors() {
  const QueueName = `${prefix}-errors`;
  const { QueueUrl } = await call("CreateQueue", { QueueName });
  const missing = await refused("missing queue", sdk.QueueDoesNotExist, "GetQueueUrl", { QueueName: `${prefix}-nope` });
  check("name", missing.name, "QueueDoesNotExist");
  check("status", missing.$metadata.httpStatusCode, 400);
  await refused("other attributes", sdk.QueueNameExists, "CreateQueue", { QueueName, Attributes: { DelaySeconds: "5" } });
  await refused("garbage handle", sdk.ReceiptHandleIsInvalid, "DeleteMessage", { QueueUrl, ReceiptHandle: "garbage" });
  await refused("bad body", sdk.InvalidMessageContents, "SendMessage", { QueueUrl, MessageBody: "\u0000" });
  await refused("list values", sdk.UnsupportedOperation, "SendMessage", {
    QueueUrl,
    MessageBody: "x",
    MessageAttributes: { a: { DataType: "String", StringListValues: ["x"] } },
  });
  const body = "é".repeat(1 << 19);
  check("1 MiB", (await call("SendMessage", { QueueUrl, MessageBody: body })).MD5OfMessageBody, md5(body));
  check("1 MiB back", (await call("ReceiveMessage", { QueueUrl })).Messages[0].Body === body, true);
}

async function pages() {
  const made = [];
  for (let i = 0; i < 7; i++) made.push((await call("CreateQueue", { QueueName: `${prefix}-page-${i}` })).QueueUrl);
  const found = [];
  for await (const page of sdk.paginateListQueues({ client: sqs, pageSize: 3 }, { QueueNamePrefix: `${prefix}-page` })) {
    found.push(page.QueueUrls);
  }
  check("pages", found.map((p) => p.length), [3, 3, 1]);
  check("all pages", found.flat().sort(), made);
}

async function fifo() {
  const Attributes = { FifoQueue: "true", ContentBasedDeduplication: "true" };
  const { QueueUrl } = await call("CreateQueue", { QueueName: `${prefix}-order.fifo`, Attributes });
  const Entries = [...Array(8).keys()].map((i) => ({ Id: `e${i}`, MessageBody: `${i}`, MessageGroupId: `g${i % 2}` }));
  const send = async () =>
    (await call("SendMessageBatch", { QueueUrl, Entries })).Successful.map((r) => [r.Id, r.MessageId, r.SequenceNumber]);
  const sent = await send();
  check("a batch sent again", await send(), sent);
  const numbers = sent.map((r) => BigInt(r[2]));
  check("sequence numbers rise", numbers.every((n, i) => i === 0 || n > numbers[i - 1]), true);
  const receive = async (input) =>
    (await call("ReceiveMessage", { QueueUrl, MaxNumberOfMessages: 10, MessageSystemAttributeNames: ["All"], ...input })).Messages ?? [];
  const got = await receive({ ReceiveRequestAttemptId: "attempt" });
  const handles = (messages) => messages.map((m) => m.ReceiptHandle);
  check("an attempt again", handles(await receive({ ReceiveRequestAttemptId: "attempt" })), handles(got));
  const group = (g) => got.filter((m) => m.Attributes.MessageGroupId === g).map((m) => m.Body);
  check("order", [group("g0"), group("g1")], [["0", "2", "4", "6"], ["1", "3", "5", "7"]]);
  await call("SendMessage", { QueueUrl, MessageBody: "later", MessageGroupId: "g0" });
  check("the group is locked", await receive(), []);
  const entry = (m, more) => ({ Id: m.Body, ReceiptHandle: m.ReceiptHandle, ...more });
  await call("ChangeMessageVisibilityBatch", { QueueUrl, Entries: got.map((m) => entry(m, { VisibilityTimeout: 0 })) });
  const back = await receive();
  check("back", back.map((m) => m.Body).sort(), ["0", "1", "2", "3", "4", "5", "6", "7", "later"]);
  const old = await call("DeleteMessageBatch", { QueueUrl, Entries: got.map((m) => entry(m)) });
  check("old handles", old.Failed.map((f) => f.Code), Array(8).fill("ReceiptHandleIsInvalid"));
  check("deleted", (await call("DeleteMessageBatch", { QueueUrl, Entries: back.map((m) => entry(m)) })).Successful.length, 9);
}

try {
  for (const part of [lifecycle, batches, attributes, polls, queueAttributes, errors, pages, fifo]) await part();
  console.log(`javascript (client-sqs ${version}): ok ${checks} checks`);
} catch (error) {
  console.error(`javascript: ${error.stack}`);
  process.exit(1);
}
