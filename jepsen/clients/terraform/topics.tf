resource "aws_sns_topic" "events" {
  name                              = "${var.prefix}-events"
  display_name                      = var.changed ? "" : "Events"
  signature_version                 = var.changed ? 1 : 2
  tracing_config                    = var.changed ? "PassThrough" : "Active"
  kms_master_key_id                 = var.changed ? "" : "alias/aws/sns"
  sqs_success_feedback_role_arn     = "arn:aws:iam::000000000000:role/${var.changed ? "new" : "old"}"
  sqs_success_feedback_sample_rate  = var.changed ? 0 : 100
  sqs_failure_feedback_role_arn     = var.changed ? "" : "arn:aws:iam::000000000000:role/failures"
  http_success_feedback_sample_rate = 50
  delivery_policy = var.changed ? "" : jsonencode({
    http = {
      defaultHealthyRetryPolicy = {
        minDelayTarget     = 20
        maxDelayTarget     = 20
        numRetries         = 3
        numMaxDelayRetries = 0
        numNoDelayRetries  = 0
        numMinDelayRetries = 0
        backoffFunction    = "linear"
      }
      disableSubscriptionOverrides = false
      defaultThrottlePolicy        = { maxReceivesPerSecond = 1 }
    }
  })
  tags = var.changed ? { Team = "billing" } : { Team = "orders", Empty = "" }
}

resource "aws_sns_topic_policy" "events" {
  arn = aws_sns_topic.events.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Id      = "events"
    Statement = [{
      Sid       = var.changed ? "second" : "first"
      Effect    = "Allow"
      Principal = { AWS = "*" }
      Action    = var.changed ? ["SNS:Publish", "SNS:Subscribe"] : ["SNS:Publish"]
      Resource  = aws_sns_topic.events.arn
      Condition = { StringEquals = { "AWS:SourceOwner" = "000000000000" } }
    }]
  })
}

resource "aws_sns_topic" "inline" {
  name_prefix = "${var.prefix}-inline-"
  policy = var.changed ? null : jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "s3.amazonaws.com" }
      Action    = "sns:Publish"
      Resource  = "arn:aws:sns:us-east-1:000000000000:*"
    }]
  })
}

resource "aws_sns_topic" "fifo" {
  name                        = "${var.prefix}-events.fifo"
  fifo_topic                  = true
  content_based_deduplication = !var.changed
  fifo_throughput_scope       = var.changed ? "Topic" : "MessageGroup"
}

resource "aws_sns_topic_data_protection_policy" "inline" {
  arn = aws_sns_topic.inline.arn
  policy = jsonencode({
    Name        = "cards"
    Description = var.changed ? "Audit" : "Deny"
    Version     = "2021-06-01"
    Statement = [{
      Sid            = "deny"
      DataDirection  = "Inbound"
      DataIdentifier = ["arn:aws:dataprotection::aws:data-identifier/CreditCardNumber"]
      Operation      = { Deny = {} }
      Principal      = ["*"]
    }]
  })
}

# Filtered by attributes, then by the body.
resource "aws_sns_topic_subscription" "orders" {
  topic_arn            = aws_sns_topic.events.arn
  protocol             = "sqs"
  endpoint             = aws_sqs_queue.orders.arn
  raw_message_delivery = !var.changed
  filter_policy_scope  = var.changed ? "MessageBody" : "MessageAttributes"
  filter_policy = var.changed ? jsonencode({
    order = { price = [{ numeric = [">", 100.5] }] }
    }) : jsonencode({
    store = ["example_corp", { prefix = "a" }]
    price = [{ numeric = [">=", 100] }]
  })
  redrive_policy = jsonencode({ deadLetterTargetArn = var.changed ? aws_sqs_queue.keyed.arn : aws_sqs_queue.dead.arn })
}

# All that is optional is taken off when changed.
resource "aws_sns_topic_subscription" "inline" {
  topic_arn      = aws_sns_topic.events.arn
  protocol       = "sqs"
  endpoint       = aws_sqs_queue.inline.arn
  filter_policy  = var.changed ? null : jsonencode({ kind = ["a"] })
  redrive_policy = var.changed ? null : jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn })
}

resource "aws_sns_topic_subscription" "fifo" {
  topic_arn            = aws_sns_topic.fifo.arn
  protocol             = "sqs"
  endpoint             = aws_sqs_queue.orders_fifo.arn
  raw_message_delivery = var.changed
}

# Nobody listens there: the subscription stays unconfirmed.
resource "aws_sns_topic_subscription" "http" {
  topic_arn = aws_sns_topic.events.arn
  protocol  = "http"
  endpoint  = "http://127.0.0.1:9/hook"
  delivery_policy = jsonencode({
    healthyRetryPolicy = {
      minDelayTarget     = 5
      maxDelayTarget     = var.changed ? 30 : 20
      numRetries         = 3
      numMaxDelayRetries = 0
      numNoDelayRetries  = 0
      numMinDelayRetries = 0
      backoffFunction    = "linear"
    }
  })
}

data "aws_sns_topic" "events" {
  name       = aws_sns_topic.events.name
  depends_on = [aws_sns_topic_policy.events]
}
