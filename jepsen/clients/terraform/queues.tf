# A queue and its dead letters, with a resource of its own for each policy.
resource "aws_sqs_queue" "dead" {
  name                      = "${var.prefix}-dead"
  message_retention_seconds = 1209600
}

resource "aws_sqs_queue" "orders" {
  name                       = "${var.prefix}-orders"
  visibility_timeout_seconds = var.changed ? 50 : 45
  delay_seconds              = var.changed ? 0 : 90
  max_message_size           = 2048
  message_retention_seconds  = 86400
  receive_wait_time_seconds  = var.changed ? 0 : 10
  sqs_managed_sse_enabled    = !var.changed
  tags                       = var.changed ? { Team = "billing", New = "yes" } : { Team = "orders", Empty = "" }
}

resource "aws_sqs_queue_redrive_policy" "orders" {
  queue_url = aws_sqs_queue.orders.id
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = var.changed ? 5 : 4
  })
}

resource "aws_sqs_queue_redrive_allow_policy" "dead" {
  queue_url = aws_sqs_queue.dead.id
  redrive_allow_policy = var.changed ? jsonencode({
    redrivePermission = "allowAll"
    }) : jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.orders.arn]
  })
}

resource "aws_sqs_queue_policy" "orders" {
  queue_url = aws_sqs_queue.orders.id
  policy = jsonencode({
    Version = "2012-10-17"
    Id      = "orders"
    Statement = [{
      Sid       = var.changed ? "second" : "first"
      Effect    = "Allow"
      Principal = "*"
      Action    = var.changed ? ["sqs:SendMessage", "sqs:ReceiveMessage"] : ["sqs:SendMessage"]
      Resource  = aws_sqs_queue.orders.arn
      Condition = { ArnEquals = { "aws:SourceArn" = aws_sns_topic.events.arn } }
    }]
  })
}

# The same as attributes of the queue; when changed, all are taken off.
resource "aws_sqs_queue" "inline" {
  name = "${var.prefix}-inline"
  redrive_policy = var.changed ? "" : jsonencode({
    maxReceiveCount     = 3
    deadLetterTargetArn = aws_sqs_queue.keyed.arn
  })
  policy = var.changed ? "" : jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = "arn:aws:iam::123456789012:root" }
      Action    = "sqs:*"
      Resource  = "arn:aws:sqs:us-east-1:000000000000:${var.prefix}-inline"
    }]
  })
  tags = var.changed ? {} : { Stage = "one" }
}

resource "aws_sqs_queue" "keyed" {
  name                              = "${var.prefix}-keyed"
  kms_master_key_id                 = var.changed ? "alias/other" : "alias/aws/sqs"
  kms_data_key_reuse_period_seconds = var.changed ? 600 : 300
  redrive_allow_policy              = var.changed ? "" : jsonencode({ redrivePermission = "allowAll" })
}

resource "aws_sqs_queue" "prefixed" {
  name_prefix = "${var.prefix}-${var.changed ? "b" : "a"}-"
}

resource "aws_sqs_queue" "dead_fifo" {
  name       = "${var.prefix}-dead.fifo"
  fifo_queue = true
}

resource "aws_sqs_queue" "orders_fifo" {
  name                        = "${var.prefix}-orders.fifo"
  fifo_queue                  = true
  content_based_deduplication = !var.changed
  deduplication_scope         = var.changed ? "queue" : "messageGroup"
  fifo_throughput_limit       = var.changed ? "perQueue" : "perMessageGroupId"
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_fifo.arn
    maxReceiveCount     = 2
  })
  tags = { Team = "orders" }
}

data "aws_sqs_queue" "orders" {
  name       = aws_sqs_queue.orders.name
  depends_on = [aws_sqs_queue_policy.orders]
}

data "aws_sqs_queues" "all" {
  queue_name_prefix = var.prefix
  depends_on        = [aws_sqs_queue.orders, aws_sqs_queue.orders_fifo]
}

output "same" {
  value = alltrue([
    data.aws_sqs_queue.orders.arn == aws_sqs_queue.orders.arn,
    data.aws_sqs_queue.orders.url == aws_sqs_queue.orders.url,
    data.aws_sqs_queue.orders.tags == aws_sqs_queue.orders.tags,
    contains(data.aws_sqs_queues.all.queue_urls, aws_sqs_queue.orders_fifo.url),
    data.aws_sns_topic.events.arn == aws_sns_topic.events.arn,
    data.aws_sns_topic.events.tags == aws_sns_topic.events.tags,
  ])
}

output "queue_url" {
  value = aws_sqs_queue.orders.url
}
