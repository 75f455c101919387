#!/usr/bin/env bash
# Builds Terraform and its provider for AWS from their Go modules: build.sh FOLDER.
# Of the provider's services SQS and SNS alone are compiled in: all 260 of them take
# hours and more memory than many a machine has.
set -euo pipefail
terraform=github.com/hashicorp/terraform@v1.5.7
provider=github.com/hashicorp/terraform-provider-aws@v1.60.1-0.20260602190131-5f2286d6d836 # 6.47.1
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$1"
mkdir -p "$1"
folder=$(cd "$1" && pwd)

cd / # of no module
go mod download "$provider"
source=$(go mod download -json "$provider" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# Of the other services stay the files that are no Go: the provider embeds some.
(cd "$source" && tar cf - --exclude='*_test.go' --exclude='testdata' --exclude='internal/service/*.go' \
	main.go go.mod go.sum names version internal) | tar xf - -C "$copy"
chmod -R u+w "$copy"
cp -r "$source"/internal/service/{iam,sns,sqs} "$copy/internal/service/"
chmod -R u+w "$copy"
python3 "$here/provider.py" "$copy"
(cd "$copy" && go build -o "$folder/terraform-provider-aws" .)
GOBIN=$folder go install "$terraform"
