package holdfast;

import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.util.VersionInfo;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sns.SnsClient;
import software.amazon.awssdk.services.sns.model.BatchEntryIdsNotDistinctException;
import software.amazon.awssdk.services.sns.model.BatchResultErrorEntry;
import software.amazon.awssdk.services.sns.model.InvalidParameterException;
import software.amazon.awssdk.services.sns.model.InvalidParameterValueException;
import software.amazon.awssdk.services.sns.model.MessageAttributeValue;
import software.amazon.awssdk.services.sns.model.NotFoundException;
import software.amazon.awssdk.services.sns.model.PublishBatchRequestEntry;
import software.amazon.awssdk.services.sns.model.PublishBatchResponse;
import software.amazon.awssdk.services.sns.model.PublishBatchResultEntry;
import software.amazon.awssdk.services.sns.model.PublishResponse;
import software.amazon.awssdk.services.sns.model.ResourceNotFoundException;
import software.amazon.awssdk.services.sns.model.SnsException;
import software.amazon.awssdk.services.sns.model.Subscription;
import software.amazon.awssdk.services.sns.model.Tag;
import software.amazon.awssdk.services.sns.model.Topic;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;

/** Checks an SNS endpoint, and the SQS beside it, through the AWS SDK for Java v2. */
public final class SnsCheck {
  private final SnsClient sns;
  private final SqsClient sqs;
  private final String prefix = "java-sns-" + UUID.randomUUID().toString().substring(0, 8);
  private int checks;

  private SnsCheck(SnsClient sns, SqsClient sqs) {
    this.sns = sns;
    this.sqs = sqs;
  }

  /** The only argument is the endpoint. */
  public static void main(String[] args) {
    StaticCredentialsProvider credentials =
        StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test"));
    try (SnsClient sns =
            SnsClient.builder()
                .endpointOverride(URI.create(args[0]))
                .region(Region.US_EAST_1)
                .credentialsProvider(credentials)
                .httpClientBuilder(UrlConnectionHttpClient.builder())
                .build();
        SqsClient sqs =
            SqsClient.builder()
                .endpointOverride(URI.create(args[0]))
                .region(Region.US_EAST_1)
                .credentialsProvider(credentials)
                .httpClientBuilder(UrlConnectionHttpClient.builder())
                .build()) {
      SnsCheck check = new SnsCheck(sns, sqs);
      check.deliveries();
      check.fifo();
      check.topics();
      check.errors();
      System.out.printf(
          "java for sns (sdk %s): ok %d checks%n", VersionInfo.SDK_VERSION, check.checks);
    }
  }

  private void check(String what, Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError(what + ": got " + got + ", want " + want);
    }
    checks++;
  }

  /** The call must throw exactly this exception of the SDK. */
  private <E extends SnsException> void refused(String what, Class<E> kind, Runnable call) {
    try {
      call.run();
    } catch (SnsException e) {
      if (!kind.equals(e.getClass())) {
        throw new AssertionError(what + ": got " + e, e);
      }
      checks++;
      return;
    }
    throw new AssertionError(what + ": succeeded, want " + kind.getSimpleName());
  }

  private String queue(String name, Map<QueueAttributeName, String> attributes) {
    return sqs.createQueue(r -> r.queueName(prefix + "-" + name).attributes(attributes))
        .queueUrl();
  }

  private String arn(String url) {
    return sqs.getQueueAttributes(
            r -> r.queueUrl(url).attributeNames(QueueAttributeName.QUEUE_ARN))
        .attributes()
        .get(QueueAttributeName.QUEUE_ARN);
  }

  /** Receives one message and deletes it. */
  private Message take(String url) {
    List<Message> messages =
        sqs.receiveMessage(r -> r.queueUrl(url).waitTimeSeconds(5).messageAttributeNames("All"))
            .messages();
    check("messages of " + url, messages.size(), 1);
    sqs.deleteMessage(r -> r.queueUrl(url).receiptHandle(messages.get(0).receiptHandle()));
    return messages.get(0);
  }

  private void nothing(String url) {
    check("no more in " + url, sqs.receiveMessage(r -> r.queueUrl(url)).messages().size(), 0);
  }

  private static MessageAttributeValue text(String value) {
    return MessageAttributeValue.builder().dataType("String").stringValue(value).build();
  }

  private void deliveries() {
    String topic = sns.createTopic(r -> r.name(prefix)).topicArn();
    String plain = queue("plain", Map.of());
    String raw = queue("raw", Map.of());
    sns.subscribe(r -> r.topicArn(topic).protocol("sqs").endpoint(arn(plain)));
    String subscription =
        sns.subscribe(
                r ->
                    r.topicArn(topic)
                        .protocol("sqs")
                        .endpoint(arn(raw))
                        .returnSubscriptionArn(true)
                        .attributes(
                            Map.of(
                                "RawMessageDelivery", "true",
                                "FilterPolicy", "{\"kind\":[\"raw\"]}")))
            .subscriptionArn();
    PublishResponse published =
        sns.publish(r -> r.topicArn(topic).message("héllo <&> \uD834\uDD1E").subject("hello"));
    String body = take(plain).body();
    check("message id", body.contains("\"MessageId\" : \"" + published.messageId() + "\""), true);
    check("message", body.contains("\"Message\" : \"héllo <&> \uD834\uDD1E\""), true);
    nothing(raw);
    PublishBatchResponse batch =
        sns.publishBatch(
            r ->
                r.topicArn(topic)
                    .publishBatchRequestEntries(
                        PublishBatchRequestEntry.builder()
                            .id("a")
                            .message("raw")
                            .messageAttributes(
                                Map.of(
                                    "kind",
                                    text("raw"),
                                    "bytes",
                                    MessageAttributeValue.builder()
                                        .dataType("Binary")
                                        .binaryValue(SdkBytes.fromByteArray(new byte[] {0, -1}))
                                        .build()))
                            .build(),
                        PublishBatchRequestEntry.builder()
                            .id("b")
                            .message("m")
                            .subject("two\nlines")
                            .build()));
    check("batch", batch.successful().stream().map(PublishBatchResultEntry::id).toList(), List.of("a"));
    check("failed", batch.failed().stream().map(BatchResultErrorEntry::code).toList(), List.of("InvalidParameter"));
    Message message = take(raw);
    check("raw", message.body(), "raw");
    check("raw attribute", message.messageAttributes().get("bytes").binaryValue().asByteArray()[1], (byte) -1);
    take(plain);
    check(
        "filter policy",
        sns.getSubscriptionAttributes(r -> r.subscriptionArn(subscription))
            .attributes()
            .get("FilterPolicy"),
        "{\"kind\":[\"raw\"]}");
    sns.unsubscribe(r -> r.subscriptionArn(subscription));
    check(
        "subscriptions",
        sns.listSubscriptionsByTopicPaginator(r -> r.topicArn(topic)).subscriptions().stream()
            .map(Subscription::endpoint)
            .toList(),
        List.of(arn(plain)));
    sns.deleteTopic(r -> r.topicArn(topic));
    refused("deleted topic", NotFoundException.class, () -> sns.publish(r -> r.topicArn(topic).message("m")));
  }

  private void fifo() {
    String topic =
        sns.createTopic(
                r ->
                    r.name(prefix + ".fifo")
                        .attributes(
                            Map.of("FifoTopic", "true", "ContentBasedDeduplication", "true")))
            .topicArn();
    String url = queue("q.fifo", Map.of(QueueAttributeName.FIFO_QUEUE, "true"));
    sns.subscribe(r -> r.topicArn(topic).protocol("sqs").endpoint(arn(url)).attributes(Map.of("RawMessageDelivery", "true")));
    PublishResponse first = sns.publish(r -> r.topicArn(topic).message("a").messageGroupId("g"));
    PublishResponse again = sns.publish(r -> r.topicArn(topic).message("a").messageGroupId("g"));
    check("duplicate", again.sequenceNumber(), first.sequenceNumber());
    check("fifo", take(url).body(), "a");
    nothing(url);
  }

  private void topics() {
    String topic =
        sns.createTopic(r -> r.name(prefix + "-topics").attributes(Map.of("DisplayName", "A & B")))
            .topicArn();
    check("display name", sns.getTopicAttributes(r -> r.topicArn(topic)).attributes().get("DisplayName"), "A & B");
    sns.tagResource(r -> r.resourceArn(topic).tags(Tag.builder().key("a").value("1").build()));
    check("tags", sns.listTagsForResource(r -> r.resourceArn(topic)).tags().get(0).value(), "1");
    check(
        "listed",
        sns.listTopicsPaginator().topics().stream().map(Topic::topicArn).filter(topic::equals).count(),
        1L);
  }

  private void errors() {
    String topic = sns.createTopic(r -> r.name(prefix + "-errors")).topicArn();
    refused("topic name", InvalidParameterException.class, () -> sns.createTopic(r -> r.name("a b")));
    refused(
        "attribute",
        InvalidParameterValueException.class,
        () -> sns.publish(r -> r.topicArn(topic).message("m").messageAttributes(Map.of("a.", text("x")))));
    refused(
        "tags of no topic",
        ResourceNotFoundException.class,
        () -> sns.listTagsForResource(r -> r.resourceArn(topic + "x")));
    PublishBatchRequestEntry entry =
        PublishBatchRequestEntry.builder().id("1").message("m").build();
    refused(
        "same ids",
        BatchEntryIdsNotDistinctException.class,
        () -> sns.publishBatch(r -> r.topicArn(topic).publishBatchRequestEntries(entry, entry)));
  }
}
