// Checks an SNS endpoint, and the SQS beside it, through the AWS SDK for JavaScript v3:
// node check_sns.mjs ENDPOINT. Over https it also verifies a notification with
// sns-validator, told the host that certificates are at.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { isDeepStrictEqual, promisify } from "node:util";
import * as sdk from "@aws-sdk/client-sns";
import { CreateQueueCommand, DeleteMessageCommand, GetQueueAttributesCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import MessageValidator from "sns-validator";

const { version } = createRequire(import.meta.url)("@aws-sdk/client-sns/package.json");
const endpoint = process.argv[2];
const options = { endpoint, region: "us-east-1", credentials: { accessKeyId: "test", secretAccessKey: "test" }, maxAttempts: 1 };
const sns = new sdk.SNSClient(options);
const sqs = new SQSClient(options);
const prefix = `js-sns-${randomUUID().slice(0, 8)}`;
let checks = 0;

function check(what, got, want) {
  if (!isDeepStrictEqual(got, want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
  checks++;
}

const call = (action, input) => sns.send(new sdk[`${action}Command`](input));

/** The call must be refused with the SDK's typed exception. */
async function refused(what, kind, action, input) {
  let error;
  try {
    await call(action, input);
  } catch (e) {
    error = e;
  }
  if (error === undefined) throw new Error(`${what}: succeeded, want ${kind.name}`);
  check(`${what}: ${error}`, error instanceof kind, true);
}

async function queue(label) {
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: `${prefix}-${label}` }));
  const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["QueueArn"] }));
  return [QueueUrl, Attributes.QueueArn];
}

async function take(QueueUrl) {
  const { Messages } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 5, MessageAttributeNames: ["All"] }));
  if (Messages === undefined) return undefined;
  await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: Messages[0].ReceiptHandle }));
  return Messages[0];
}

async function deliveries() {
  const { TopicArn } = await call("CreateTopic", { Name: prefix });
  const [url, arn] = await queue("plain");
  const [rawUrl, rawArn] = await queue("raw");
  await call("Subscribe", { TopicArn, Protocol: "sqs", Endpoint: arn });
  const { SubscriptionArn } = await call("Subscribe", {
    TopicArn,
    Protocol: "sqs",
    Endpoint: rawArn,
    Attributes: { RawMessageDelivery: "true", FilterPolicy: '{"kind":["raw"]}' },
    ReturnSubscriptionArn: true,
  });
  const Message = 'héllo <&> "quoted"\r\n\ttab 𝄞';
  const { MessageId } = await call("Publish", { TopicArn, Message, Subject: "hello" });
  const envelope = JSON.parse((await take(url)).Body);
  check("envelope", [envelope.MessageId, envelope.Subject, envelope.Message, envelope.TopicArn], [MessageId, "hello", Message, TopicArn]);
  const MessageAttributes = { kind: { DataType: "String", StringValue: "raw" }, bytes: { DataType: "Binary", BinaryValue: new Uint8Array([0, 255]) } };
  const batch = await call("PublishBatch", {
    TopicArn,
    PublishBatchRequestEntries: [
      { Id: "a", Message: "1" },
      { Id: "b", Message: "2", MessageAttributes },
      { Id: "c", Message: "3", Subject: "\n" },
    ],
  });
  check("batch", batch.Successful.map((e) => e.Id), ["a", "b"]);
  check("failed", batch.Failed.map((e) => [e.Id, e.Code, e.SenderFault]), [["c", "InvalidParameter", true]]);
  const raw = await take(rawUrl);
  check("raw", [raw.Body, raw.MessageAttributes.kind.StringValue, [...raw.MessageAttributes.bytes.BinaryValue]], ["2", "raw", [0, 255]]);
  check("filtered out", (await call("GetSubscriptionAttributes", { SubscriptionArn })).Attributes.FilterPolicy, '{"kind":["raw"]}');
  await call("Unsubscribe", { SubscriptionArn });
  check("subscriptions", (await call("ListSubscriptionsByTopic", { TopicArn })).Subscriptions.map((s) => s.Endpoint), [arn]);
  await call("TagResource", { ResourceArn: TopicArn, Tags: [{ Key: "a", Value: "1" }] });
  check("tags", (await call("ListTagsForResource", { ResourceArn: TopicArn })).Tags, [{ Key: "a", Value: "1" }]);
  const topics = [];
  for await (const page of sdk.paginateListTopics({ client: sns }, {})) topics.push(...page.Topics.map((t) => t.TopicArn));
  check("listed", topics.filter((t) => t === TopicArn).length, 1);
  await call("DeleteTopic", { TopicArn });
  await refused("deleted topic", sdk.NotFoundException, "Publish", { TopicArn, Message });
  await refused("topic name", sdk.InvalidParameterException, "CreateTopic", { Name: "a b" });
  await refused("attribute", sdk.InvalidParameterValueException, "Publish", {
    TopicArn: (await call("CreateTopic", { Name: `${prefix}-errors` })).TopicArn,
    Message,
    MessageAttributes: { a: { DataType: "Number", StringValue: "many" } },
  });
}

/** Consumers verify what they get. */
async function signatures() {
  if (!endpoint.startsWith("https:")) return;
  const host = new URL(endpoint).host.replaceAll(".", "\\.");
  const validator = new MessageValidator(new RegExp(`^${host}$`), "utf8");
  const validate = promisify(validator.validate.bind(validator));
  for (const SignatureVersion of ["1", "2"]) {
    const { TopicArn } = await call("CreateTopic", { Name: `${prefix}-signed-${SignatureVersion}`, Attributes: { SignatureVersion } });
    const [url, arn] = await queue(`signed-${SignatureVersion}`);
    await call("Subscribe", { TopicArn, Protocol: "sqs", Endpoint: arn });
    for (const Subject of [undefined, "a subject"]) {
      await call("Publish", { TopicArn, Subject, Message: "signed: “é”\n𝄞" });
      const { Body } = await take(url);
      check(`verified, version ${SignatureVersion}`, (await validate(JSON.parse(Body))).Message, "signed: “é”\n𝄞");
      const forged = JSON.parse(Body);
      forged.Message += "!";
      let error;
      await validate(forged).catch((e) => (error = e));
      check("forged", error?.message, "The message signature is invalid.");
    }
  }
}

try {
  for (const part of [deliveries, signatures]) await part();
  console.log(`javascript for sns (client-sns ${version}): ok ${checks} checks`);
} catch (error) {
  console.error(`javascript for sns: ${error.stack}`);
  process.exit(1);
}
