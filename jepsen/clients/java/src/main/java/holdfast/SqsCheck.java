package holdfast;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.util.VersionInfo;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.BatchEntryIdsNotDistinctException;
import software.amazon.awssdk.services.sqs.model.BatchResultErrorEntry;
import software.amazon.awssdk.services.sqs.model.ChangeMessageVisibilityBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchResultEntry;
import software.amazon.awssdk.services.sqs.model.EmptyBatchRequestException;
import software.amazon.awssdk.services.sqs.model.InvalidAttributeNameException;
import software.amazon.awssdk.services.sqs.model.InvalidMessageContentsException;
import software.amazon.awssdk.services.sqs.model.ListQueuesResponse;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeName;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeNameForSends;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeValue;
import software.amazon.awssdk.services.sqs.model.PurgeQueueInProgressException;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueDoesNotExistException;
import software.amazon.awssdk.services.sqs.model.QueueNameExistsException;
import software.amazon.awssdk.services.sqs.model.ReceiptHandleIsInvalidException;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchResponse;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchResultEntry;
import software.amazon.awssdk.services.sqs.model.SendMessageResponse;
import software.amazon.awssdk.services.sqs.model.SqsException;

/**
 * Checks an SQS endpoint through the AWS SDK for Java v2. The SDK compares the MD5 digests of
 * bodies and attributes itself and throws when one differs.
 */
public final class SqsCheck {
  private final SqsClient sqs;
  private final String prefix = "java-" + UUID.randomUUID().toString().substring(0, 8);
  private int checks;

  private SqsCheck(SqsClient sqs) {
    this.sqs = sqs;
  }

  /** The only argument is the endpoint. */
  public static void main(String[] args) throws Exception {
    try (SqsClient client =
        SqsClient.builder()
            .endpointOverride(URI.create(args[0]))
            .region(Region.US_EAST_1)
            .credentialsProvider(
                StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test")))
            .httpClientBuilder(UrlConnectionHttpClient.builder())
            .build()) {
      SqsCheck check = new SqsCheck(client);
      check.lifecycle();
      check.batches();
      check.attributes();
      check.polls();
      check.queueAttributes();
      check.errors();
      check.pages();
      check.fifo();
      System.out.printf("java (sdk %s): ok %d checks%n", VersionInfo.SDK_VERSION, check.checks);
    }
  }

  private void check(String what, Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError(what + ": got " + got + ", want " + want);
    }
    checks++;
  }

  /** The call must throw exactly this exception of the SDK. */
  private <E extends SqsException> E refused(String what, Class<E> kind, Runnable call) {
    try {
      call.run();
    } catch (SqsException e) {
      if (!kind.equals(e.getClass())) {
        throw new AssertionError(what + ": got " + e, e);
      }
      checks++;
      return kind.cast(e);
    }
    throw new AssertionError(what + ": succeeded, want " + kind.getSimpleName());
  }

  private void fifo() {
    String url =
        sqs.createQueue(
                r ->
                    r.queueName(prefix + "-order.fifo")
                        .attributes(
                            Map.of(
                                QueueAttributeName.FIFO_QUEUE, "true",
                                QueueAttributeName.CONTENT_BASED_DEDUPLICATION, "true")))
            .queueUrl();
    List<SendMessageBatchRequestEntry> entries =
        IntStream.range(0, 8)
            .mapToObj(
                i ->
                    SendMessageBatchRequestEntry.builder()
                        .id("e" + i)
                        .messageBody("" + i)
                        .messageGroupId("g" + i % 2)
                        .build())
            .toList();
    List<String> sent = sendOrdered(url, entries);
    check("a batch sent again", sendOrdered(url, entries), sent);
    List<Message> got = receiveOrdered(url, "attempt");
    check(
        "an attempt again",
        receiveOrdered(url, "attempt").stream().map(Message::receiptHandle).toList(),
        got.stream().map(Message::receiptHandle).toList());
    for (int g = 0; g < 2; g++) {
      String group = "g" + g;
      int first = g;
      check(
          "order of " + group,
          got.stream()
              .filter(
                  m -> group.equals(m.attributes().get(MessageSystemAttributeName.MESSAGE_GROUP_ID)))
              .map(Message::body)
              .toList(),
          IntStream.range(0, 4).mapToObj(i -> "" + (2 * i + first)).toList());
    }
    sqs.sendMessage(r -> r.queueUrl(url).messageBody("later").messageGroupId("g0"));
    check("the group is locked", receiveOrdered(url, null).size(), 0);
    check("deleted", deleteAll(url, got), 8);
    check(
        "unlocked",
        receiveOrdered(url, null).stream().map(Message::body).toList(),
        List.of("later"));
  }

  /** Sends a batch and returns ids and sequence numbers. */
  private List<String> sendOrdered(String url, List<SendMessageBatchRequestEntry> entries) {
    return sqs.sendMessageBatch(r -> r.queueUrl(url).entries(entries)).successful().stream()
        .map(s -> s.id() + " " + s.messageId() + " " + s.sequenceNumber())
        .toList();
  }

  private List<Message> receiveOrdered(String url, String attempt) {
    return sqs.receiveMessage(
            r ->
                r.queueUrl(url)
                    .maxNumberOfMessages(10)
                    .receiveRequestAttemptId(attempt)
                    .messageSystemAttributeNames(MessageSystemAttributeName.ALL))
        .messages();
  }

  private int deleteAll(String url, List<Message> messages) {
    return sqs.deleteMessageBatch(
            r ->
                r.queueUrl(url)
                    .entries(
                        messages.stream()
                            .map(
                                m ->
                                    DeleteMessageBatchRequestEntry.builder()
                                        .id(m.body())
                                        .receiptHandle(m.receiptHandle())
                                        .build())
                            .toList()))
        .successful()
        .size();
  }

  private String create(String name) {
    return sqs.createQueue(r -> r.queueName(prefix + "-" + name)).queueUrl();
  }

  private void lifecycle() {
    String url = create("life");
    check("create again", create("life"), url);
    check("queue url", sqs.getQueueUrl(r -> r.queueName(prefix + "-life")).queueUrl(), url);
    String body = "héllo <&> \"quoted\"\r\n\ttab \uD834\uDD1E";
    SendMessageResponse sent = sqs.sendMessage(r -> r.queueUrl(url).messageBody(body));
    Message m =
        sqs.receiveMessage(
                r ->
                    r.queueUrl(url).messageSystemAttributeNames(MessageSystemAttributeName.ALL))
            .messages()
            .get(0);
    check("body", m.body(), body);
    check("id", m.messageId(), sent.messageId());
    check(
        "receive count",
        m.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT),
        "1");
    check("hidden", sqs.receiveMessage(r -> r.queueUrl(url)).hasMessages(), false);
    sqs.changeMessageVisibility(
        r -> r.queueUrl(url).receiptHandle(m.receiptHandle()).visibilityTimeout(0));
    Message again = sqs.receiveMessage(r -> r.queueUrl(url)).messages().get(0);
    check("another handle", again.receiptHandle().equals(m.receiptHandle()), false);
    sqs.deleteMessage(r -> r.queueUrl(url).receiptHandle(again.receiptHandle()));
    sqs.deleteMessage(r -> r.queueUrl(url).receiptHandle(again.receiptHandle()));
    sqs.deleteQueue(r -> r.queueUrl(url));
    refused(
        "deleted queue",
        QueueDoesNotExistException.class,
        () -> sqs.sendMessage(r -> r.queueUrl(url).messageBody("x")));
  }

  private void batches() {
    String url = create("batch");
    List<SendMessageBatchRequestEntry> entries = new ArrayList<>();
    IntStream.range(0, 9).forEach(i -> entries.add(entry("e" + i, "body " + i)));
    entries.add(entry("bad", "x\u0001"));
    SendMessageBatchResponse sent =
        sqs.sendMessageBatch(r -> r.queueUrl(url).entries(entries));
    check(
        "sent",
        sent.successful().stream().map(SendMessageBatchResultEntry::id).toList(),
        IntStream.range(0, 9).mapToObj(i -> "e" + i).toList());
    check(
        "failed",
        sent.failed().stream().map(e -> e.id() + " " + e.code() + " " + e.senderFault()).toList(),
        List.of("bad InvalidMessageContents true"));
    List<Message> got =
        sqs.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(10)).messages();
    check(
        "bodies",
        got.stream().map(Message::body).sorted().toList(),
        IntStream.range(0, 9).mapToObj(i -> "body " + i).toList());
    var changed =
        sqs.changeMessageVisibilityBatch(
            r ->
                r.queueUrl(url)
                    .entries(
                        change("a", got.get(0).receiptHandle()), change("b", "garbage")));
    check("changed", changed.successful().size(), 1);
    check(
        "not changed",
        changed.failed().stream().map(BatchResultErrorEntry::code).toList(),
        List.of("ReceiptHandleIsInvalid"));
    var deleted =
        sqs.deleteMessageBatch(
            r ->
                r.queueUrl(url)
                    .entries(
                        IntStream.range(0, 9)
                            .mapToObj(
                                i ->
                                    DeleteMessageBatchRequestEntry.builder()
                                        .id("d" + i)
                                        .receiptHandle(got.get(i).receiptHandle())
                                        .build())
                            .toList()));
    check(
        "deleted",
        deleted.successful().stream().map(DeleteMessageBatchResultEntry::id).toList(),
        IntStream.range(0, 9).mapToObj(i -> "d" + i).toList());
    check("none failed", deleted.hasFailed(), false);
    refused(
        "empty batch",
        EmptyBatchRequestException.class,
        () -> sqs.sendMessageBatch(r -> r.queueUrl(url).entries(List.of())));
    refused(
        "repeated ids",
        BatchEntryIdsNotDistinctException.class,
        () -> sqs.sendMessageBatch(r -> r.queueUrl(url).entries(entry("1", "x"), entry("1", "y"))));
  }

  private static SendMessageBatchRequestEntry entry(String id, String body) {
    return SendMessageBatchRequestEntry.builder().id(id).messageBody(body).build();
  }

  private static ChangeMessageVisibilityBatchRequestEntry change(String id, String handle) {
    return ChangeMessageVisibilityBatchRequestEntry.builder()
        .id(id)
        .receiptHandle(handle)
        .visibilityTimeout(60)
        .build();
  }

  private void attributes() {
    String url = create("attributes");
    byte[] raw = new byte[256];
    IntStream.range(0, raw.length).forEach(i -> raw[i] = (byte) i);
    Map<String, MessageAttributeValue> sent =
        Map.of(
            "foo.one", text("String", "é\r\n<1>"),
            "foo.two", text("Number.int", "2"),
            "raw",
                MessageAttributeValue.builder()
                    .dataType("Binary.png")
                    .binaryValue(SdkBytes.fromByteArray(raw))
                    .build());
    sqs.sendMessage(
        r ->
            r.queueUrl(url)
                .messageBody("x")
                .messageAttributes(sent)
                .messageSystemAttributes(
                    Map.of(
                        MessageSystemAttributeNameForSends.AWS_TRACE_HEADER,
                        MessageSystemAttributeValue.builder()
                            .dataType("String")
                            .stringValue("Root=1-5759e988-bd862e3fe1be46a994272793")
                            .build())));
    check("all attributes", receive(url, "All").messageAttributes(), sent);
    check(
        "by prefix",
        receive(url, "foo.*").messageAttributes().keySet().stream().sorted().toList(),
        List.of("foo.one", "foo.two"));
    check(
        "by name", receive(url, "raw", "nope").messageAttributes(), Map.of("raw", sent.get("raw")));
    check("no names", receive(url).hasMessageAttributes(), false);
  }

  private static MessageAttributeValue text(String type, String value) {
    return MessageAttributeValue.builder().dataType(type).stringValue(value).build();
  }

  private Message receive(String url, String... names) {
    return sqs.receiveMessage(
            r -> r.queueUrl(url).visibilityTimeout(0).messageAttributeNames(names))
        .messages()
        .get(0);
  }

  private void polls() throws Exception {
    String url = create("poll");
    long start = System.nanoTime();
    check(
        "empty poll",
        sqs.receiveMessage(r -> r.queueUrl(url).waitTimeSeconds(1)).hasMessages(),
        false);
    check("poll lasted", elapsedMillis(start) > 900, true);
    CompletableFuture<Void> late =
        CompletableFuture.runAsync(
            () -> sqs.sendMessage(r -> r.queueUrl(url).messageBody("late")),
            CompletableFuture.delayedExecutor(1, TimeUnit.SECONDS));
    start = System.nanoTime();
    check(
        "woken poll",
        sqs.receiveMessage(r -> r.queueUrl(url).waitTimeSeconds(20)).messages().get(0).body(),
        "late");
    check("woken early", elapsedMillis(start) < 10_000, true);
    late.get();
  }

  private static long elapsedMillis(long start) {
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
  }

  private void queueAttributes() {
    String url = create("set");
    sqs.setQueueAttributes(
        r -> r.queueUrl(url).attributes(Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "7")));
    Map<QueueAttributeName, String> got =
        sqs.getQueueAttributes(r -> r.queueUrl(url).attributeNames(QueueAttributeName.ALL))
            .attributes();
    check("visibility", got.get(QueueAttributeName.VISIBILITY_TIMEOUT), "7");
    check("size", got.get(QueueAttributeName.MAXIMUM_MESSAGE_SIZE), "1048576");
    sqs.tagQueue(r -> r.queueUrl(url).tags(Map.of("a", "1", "b", "")));
    check("tags", sqs.listQueueTags(r -> r.queueUrl(url)).tags(), Map.of("a", "1", "b", ""));
    sqs.untagQueue(r -> r.queueUrl(url).tagKeys("a", "b"));
    check("no tags", sqs.listQueueTags(r -> r.queueUrl(url)).hasTags(), false);
    sqs.sendMessage(r -> r.queueUrl(url).messageBody("x"));
    sqs.purgeQueue(r -> r.queueUrl(url));
    check("purged", sqs.receiveMessage(r -> r.queueUrl(url)).hasMessages(), false);
    refused(
        "purge again",
        PurgeQueueInProgressException.class,
        () -> sqs.purgeQueue(r -> r.queueUrl(url)));
    refused(
        "unknown attribute",
        InvalidAttributeNameException.class,
        () -> sqs.setQueueAttributes(r -> r.queueUrl(url).attributesWithStrings(Map.of("Foobar", "1"))));
  }

  private void errors() {
    String url = create("errors");
    QueueDoesNotExistException missing =
        refused(
            "missing queue",
            QueueDoesNotExistException.class,
            () -> sqs.getQueueUrl(r -> r.queueName(prefix + "-nope")));
    check(
        "code",
        missing.awsErrorDetails().errorCode(),
        "AWS.SimpleQueueService.NonExistentQueue");
    check("message", missing.awsErrorDetails().errorMessage(), "The specified queue does not exist.");
    check("status", missing.statusCode(), 400);
    check("request id", missing.requestId() != null, true);
    refused(
        "other attributes",
        QueueNameExistsException.class,
        () ->
            sqs.createQueue(
                r ->
                    r.queueName(prefix + "-errors")
                        .attributes(Map.of(QueueAttributeName.DELAY_SECONDS, "5"))));
    refused(
        "garbage handle",
        ReceiptHandleIsInvalidException.class,
        () -> sqs.deleteMessage(r -> r.queueUrl(url).receiptHandle("garbage")));
    refused(
        "bad body",
        InvalidMessageContentsException.class,
        () -> sqs.sendMessage(r -> r.queueUrl(url).messageBody("\u0001")));
    String body = "é".repeat(1 << 19);
    check("1 MiB", body.getBytes(StandardCharsets.UTF_8).length, 1 << 20);
    sqs.sendMessage(r -> r.queueUrl(url).messageBody(body));
    check(
        "1 MiB back",
        sqs.receiveMessage(r -> r.queueUrl(url)).messages().get(0).body().equals(body),
        true);
  }

  private void pages() {
    List<String> made = IntStream.range(0, 7).mapToObj(i -> create("page-" + i)).toList();
    List<ListQueuesResponse> pages =
        sqs
            .listQueuesPaginator(r -> r.queueNamePrefix(prefix + "-page").maxResults(3))
            .stream()
            .toList();
    check("pages", pages.stream().map(p -> p.queueUrls().size()).toList(), List.of(3, 3, 1));
    check(
        "all pages",
        pages.stream().flatMap(p -> p.queueUrls().stream()).sorted().toList(),
        made);
    check(
        "no queue",
        sqs.listQueues(r -> r.queueNamePrefix(prefix + "-none")).hasQueueUrls(),
        false);
  }
}
