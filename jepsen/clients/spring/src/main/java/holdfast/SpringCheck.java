package holdfast;

import io.awspring.cloud.sqs.annotation.SqsListener;
import io.awspring.cloud.sqs.listener.Visibility;
import io.awspring.cloud.sqs.operations.SqsTemplate;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.messaging.Message;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.support.MessageBuilder;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;

/**
 * Checks an SQS endpoint through the listeners and the template of Spring Cloud AWS, which make
 * their queues, poll, and acknowledge in batches by themselves.
 */
@SpringBootApplication
public class SpringCheck {
  /** What the listeners convert from JSON. */
  public record Order(int number, String name) {}

  private final List<Order> orders = new CopyOnWriteArrayList<>();
  private final List<String> attempts = new CopyOnWriteArrayList<>();
  private final List<String> batches = new CopyOnWriteArrayList<>();
  private final List<String> ordered = new CopyOnWriteArrayList<>();

  @SqsListener("${check.prefix}-orders")
  void order(Order order) {
    orders.add(order);
  }

  /**
   * Fails once; the message comes back when its visibility timeout is over. That is longer than the
   * second by which acknowledgements are collected.
   */
  @SqsListener(value = "${check.prefix}-flaky", messageVisibilitySeconds = "4")
  void flaky(String body, @Header("Sqs_Msa_ApproximateReceiveCount") String count) {
    attempts.add(body + " " + count);
    if (count.equals("1")) {
      throw new IllegalStateException("as told");
    }
  }

  /** Extends the lease beyond its own end before it is done. */
  @SqsListener(value = "${check.prefix}-slow", messageVisibilitySeconds = "3")
  void slow(String body, Visibility visibility, @Header("Sqs_Msa_ApproximateReceiveCount") String count)
      throws InterruptedException {
    visibility.changeTo(30);
    Thread.sleep(4000);
    attempts.add(body + " " + count);
  }

  @SqsListener(value = "${check.prefix}-batch", maxMessagesPerPoll = "10")
  void batch(List<Message<String>> messages) {
    messages.forEach(m -> batches.add(m.getPayload()));
  }

  @SqsListener("${check.prefix}-ordered.fifo")
  void ordered(String body, @Header("Sqs_Msa_MessageGroupId") String group) {
    ordered.add(group + " " + body);
  }

  /** The only argument is the endpoint. */
  public static void main(String[] args) throws Exception {
    String prefix = "spring-" + UUID.randomUUID().toString().substring(0, 8);
    Map<String, Object> properties = new TreeMap<>();
    properties.put("check.prefix", prefix);
    properties.put("spring.cloud.aws.endpoint", args[0]);
    properties.put("spring.cloud.aws.region.static", "us-east-1");
    properties.put("spring.cloud.aws.credentials.access-key", "test");
    properties.put("spring.cloud.aws.credentials.secret-key", "test");
    properties.put("spring.cloud.aws.sqs.listener.poll-timeout", "1s");
    properties.put("spring.main.banner-mode", "off");
    properties.put("logging.level.root", "off");
    SpringApplication application =
        new SpringApplicationBuilder(SpringCheck.class).properties(properties).build();
    ConfigurableApplicationContext context = application.run();
    int checks =
        new Flow(
                context.getBean(SpringCheck.class),
                context.getBean(SqsTemplate.class),
                context.getBean(SqsAsyncClient.class),
                prefix)
            .run(context);
    System.out.printf(
        "spring (spring-cloud-aws %s): ok %d checks%n",
        SqsListener.class.getPackage().getImplementationVersion(), checks);
  }

  /** What is sent, and what must come of it. */
  private static final class Flow {
    private final SpringCheck listeners;
    private final SqsTemplate template;
    private final SqsAsyncClient sqs;
    private final String prefix;
    private int checks;

    Flow(SpringCheck listeners, SqsTemplate template, SqsAsyncClient sqs, String prefix) {
      this.listeners = listeners;
      this.template = template;
      this.sqs = sqs;
      this.prefix = prefix;
    }

    int run(ConfigurableApplicationContext context) throws Exception {
      orders();
      failures();
      batches();
      ordered();
      context.close(); // what is acknowledged is deleted by then
      try (SqsAsyncClient again = reconnect()) {
        for (String name : List.of("orders", "flaky", "slow", "batch", "ordered.fifo")) {
          check("left in " + name, left(again, name), "0 0 0");
        }
      }
      return checks;
    }

    private void orders() throws Exception {
      for (int i = 0; i < 20; i++) {
        template.send(prefix + "-orders", new Order(i, "name " + i));
      }
      await("orders", listeners.orders, 20);
      check(
          "orders",
          listeners.orders.stream().map(Order::number).sorted().toList(),
          IntStream.range(0, 20).boxed().toList());
    }

    private void failures() throws Exception {
      template.send(prefix + "-flaky", "flaky");
      await("attempts", listeners.attempts, 2);
      check("attempts", List.copyOf(listeners.attempts), List.of("flaky 1", "flaky 2"));
      template.send(prefix + "-slow", "slow");
      await("extended", listeners.attempts, 3);
      check("extended", listeners.attempts.get(2), "slow 1");
    }

    private void batches() throws Exception {
      List<Message<String>> messages =
          IntStream.range(0, 10).mapToObj(i -> MessageBuilder.withPayload("body " + i).build()).toList();
      check("sent", template.sendMany(prefix + "-batch", messages).successful().size(), 10);
      await("batch", listeners.batches, 10);
      check(
          "batch",
          listeners.batches.stream().sorted().toList(),
          IntStream.range(0, 10).mapToObj(i -> "body " + i).toList());
    }

    private void ordered() throws Exception {
      for (int i = 0; i < 20; i++) {
        String body = "m" + i;
        String group = "g" + i % 2;
        for (int twice = 0; twice < 2; twice++) {
          template.send(
              to ->
                  to.queue(prefix + "-ordered.fifo")
                      .payload(body)
                      .messageGroupId(group)
                      .messageDeduplicationId(body));
        }
      }
      await("ordered", listeners.ordered, 20);
      for (int g = 0; g < 2; g++) {
        String group = "g" + g + " ";
        int first = g;
        check(
            "order of group " + g,
            listeners.ordered.stream().filter(m -> m.startsWith(group)).toList(),
            IntStream.range(0, 10).mapToObj(i -> group + "m" + (2 * i + first)).toList());
      }
    }

    private SqsAsyncClient reconnect() {
      return SqsAsyncClient.builder()
          .endpointOverride(sqs.serviceClientConfiguration().endpointOverride().orElseThrow())
          .region(sqs.serviceClientConfiguration().region())
          .credentialsProvider(sqs.serviceClientConfiguration().credentialsProvider())
          .build();
    }

    private String left(SqsAsyncClient client, String name) throws Exception {
      List<QueueAttributeName> names =
          List.of(
              QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES,
              QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES_NOT_VISIBLE,
              QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES_DELAYED);
      String url = client.getQueueUrl(r -> r.queueName(prefix + "-" + name)).get().queueUrl();
      Map<QueueAttributeName, String> got =
          client.getQueueAttributes(r -> r.queueUrl(url).attributeNames(names)).get().attributes();
      return String.join(" ", names.stream().map(got::get).toList());
    }

    private void await(String what, List<?> list, int count) throws InterruptedException {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      while (list.size() < count) {
        if (System.nanoTime() > end) {
          throw new AssertionError(what + ": got " + list + ", want " + count);
        }
        Thread.sleep(20);
      }
    }

    private void check(String what, Object got, Object want) {
      if (!Objects.equals(got, want)) {
        throw new AssertionError(what + ": got " + got + ", want " + want);
      }
      checks++;
    }
  }
}
