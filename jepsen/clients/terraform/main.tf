# Every resource and data source that the provider has for queues and topics, less
# those for phones. With var.changed each resource that can change in place does.

terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

variable "endpoint" {
  type = string
}

variable "prefix" {
  type = string
}

variable "changed" {
  type    = bool
  default = false
}

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "test"
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
  skip_region_validation      = true
  endpoints {
    sqs = var.endpoint
    sns = var.endpoint
    sts = var.endpoint
  }
}
