// Checks an SQS endpoint through sqs-producer and sqs-consumer: node consumer.mjs ENDPOINT.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import * as sdk from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";
import { Producer } from "sqs-producer";

const endpoint = process.argv[2];
const sqs = new sdk.SQSClient({ endpoint, region: "us-east-1", credentials: { accessKeyId: "test", secretAccessKey: "test" } });
const prefix = `consumer-${randomUUID().slice(0, 8)}`;
let checks = 0;

function check(what, got, want) {
  if (!isDeepStrictEqual(got, want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
  checks++;
}

const call = (action, input) => sqs.send(new sdk[`${action}Command`](input));
const create = async (name, Attributes) => (await call("CreateQueue", { QueueName: `${prefix}-${name}`, Attributes })).QueueUrl;

async function left(QueueUrl) {
  const names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"];
  const { Attributes } = await call("GetQueueAttributes", { QueueUrl, AttributeNames: names });
  return names.map((name) => Attributes[name]);
}

/** Runs a consumer until done() is true, and for the last deletes. */
async function consume(options, done) {
  const consumer = Consumer.create({ sqs, waitTimeSeconds: 1, ...options });
  const errors = [];
  consumer.on("error", (error) => errors.push(`${error}`));
  consumer.on("processing_error", () => {});
  consumer.start();
  for (const end = Date.now() + 60_000; !done(); await sleep(20)) {
    if (Date.now() > end) throw new Error(`the consumer did not get through; errors ${errors}`);
  }
  const stopped = new Promise((resolve) => consumer.once("stopped", resolve));
  consumer.stop();
  await stopped;
  await sleep(500); // deletes under way
  check("errors of the consumer", errors, []);
}

async function batches() {
  const queueUrl = await create("batch");
  const producer = Producer.create({ queueUrl, sqs });
  const sent = [...Array(25).keys()].map((i) => ({ id: `${i}`, body: `body ${i}`, messageAttributes: { n: { DataType: "Number", StringValue: `${i}` } } }));
  check("sent", (await producer.send(sent)).length, 25);
  check("size", await producer.queueSize(), 25);
  const got = [];
  await consume(
    {
      queueUrl, batchSize: 10, messageAttributeNames: ["All"],
      handleMessageBatch: async (messages) => {
        got.push(...messages.map((m) => `${m.Body} ${m.MessageAttributes.n.StringValue}`));
        return messages;
      },
    },
    () => got.length >= 25,
  );
  check("batches", got.sort(), [...Array(25).keys()].map((i) => `body ${i} ${i}`).sort());
  check("left", await left(queueUrl), ["0", "0", "0"]);
}

/** A handler that fails has its message released, and after two failures dead-lettered. */
async function failures() {
  const dead = await create("dead");
  const { Attributes } = await call("GetQueueAttributes", { QueueUrl: dead, AttributeNames: ["QueueArn"] });
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: Attributes.QueueArn, maxReceiveCount: 2 });
  const queueUrl = await create("source", { RedrivePolicy });
  await Producer.create({ queueUrl, sqs }).send(["good", "bad"]);
  const got = [];
  await consume(
    {
      queueUrl, terminateVisibilityTimeout: true, attributeNames: ["ApproximateReceiveCount"],
      handleMessage: async (message) => {
        got.push(`${message.Body} ${message.Attributes.ApproximateReceiveCount}`);
        if (message.Body === "bad") throw new Error("as told");
        return message;
      },
    },
    () => got.length >= 3,
  );
  check("attempts", got.sort(), ["bad 1", "bad 2", "good 1"]);
  check("nothing to receive", (await call("ReceiveMessage", { QueueUrl: queueUrl })).Messages, undefined);
  const [letter] = (await call("ReceiveMessage", { QueueUrl: dead })).Messages;
  check("dead letter", letter.Body, "bad");
}

/** A heartbeat keeps a message hidden for longer than its visibility timeout. */
async function heartbeat() {
  const queueUrl = await create("slow", { VisibilityTimeout: "2" });
  await Producer.create({ queueUrl, sqs }).send("slow");
  let received = 0;
  let finished = false;
  await consume(
    {
      queueUrl, visibilityTimeout: 2, heartbeatInterval: 1,
      handleMessage: async (message) => {
        received++;
        await sleep(3500); // between two heartbeats
        finished = true;
        return message;
      },
    },
    () => finished,
  );
  check("receives", received, 1);
  check("left", await left(queueUrl), ["0", "0", "0"]);
}

async function ordered() {
  const queueUrl = await create("ordered.fifo", { FifoQueue: "true" });
  const producer = Producer.create({ queueUrl, sqs });
  const message = (i) => ({ id: `${i}`, body: `${i}`, groupId: `g${i % 3}`, deduplicationId: `d${i}` });
  await producer.send([...Array(30).keys()].map(message));
  await producer.send(message(7)); // a duplicate
  const got = {};
  let count = 0;
  await consume(
    {
      queueUrl, batchSize: 10, suppressFifoWarning: true, attributeNames: ["MessageGroupId"],
      handleMessage: async (m) => {
        (got[m.Attributes.MessageGroupId] ??= []).push(Number(m.Body));
        count++;
        return m;
      },
    },
    () => count >= 30,
  );
  for (let g = 0; g < 3; g++) check(`order of g${g}`, got[`g${g}`], [...Array(10).keys()].map((i) => 3 * i + g));
  check("left", await left(queueUrl), ["0", "0", "0"]);
}

try {
  for (const part of [batches, failures, heartbeat, ordered]) await part();
  const { dependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url)));
  console.log(`consumer (sqs-consumer ${dependencies["sqs-consumer"]}, sqs-producer ${dependencies["sqs-producer"]}): ok ${checks} checks`);
  process.exit(0);
} catch (error) {
  console.error(`consumer: ${error.stack}`);
  process.exit(1);
}
