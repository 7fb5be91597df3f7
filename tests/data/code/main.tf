# 存储桶
resource "aws_s3_bucket" "data" {
  bucket = "data"

  tags = {
    owner = "team"
  }
}

variable "region" {
  default = "eu-central-1"
}
