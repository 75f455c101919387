#!/usr/bin/env bash
# The life of a Terraform configuration, twice: apply, a plan that is empty, a change, a
# plan that is empty, what was deleted behind Terraform's back made anew, destroy.
#
#   check.sh FOLDER ENDPOINT
#
# FOLDER has the programs terraform and terraform-provider-aws. The provider looks for
# 25 s whether a queue that it made or changed stays so, and for two minutes whether
# one that it deleted stays away, so the whole takes half an hour. A step that waits
# for what does not come is ended after twenty minutes.
set -euo pipefail
folder=$(cd "$1" && pwd) endpoint=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
checks=0

cat >"$work/terraformrc" <<-EOF
	provider_installation {
	  dev_overrides { "hashicorp/aws" = "$folder" }
	}
EOF
cp "$here"/*.tf "$work/"
export TF_CLI_CONFIG_FILE=$work/terraformrc CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=1 TF_INPUT=0
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
export TF_VAR_endpoint=$endpoint TF_VAR_prefix=terraform-$$-$RANDOM TF_VAR_changed=false

tf() { timeout 1200 "$folder/terraform" -chdir="$work" "$@" -no-color; }

fail() { # what, then the output of the last step
	echo "terraform: $1" >&2
	cat "$work/said" >&2
	exit 1
}

step() { # what command...
	local what=$1
	shift
	tf "$@" >"$work/said" 2>&1 || fail "$what: exit status $?"
	checks=$((checks + 1))
}

# plan takes the exit status wanted: 0 for a plan that is empty, 2 for one that is not.
plan() { # what status
	local status=0
	tf plan -detailed-exitcode >"$work/said" 2>&1 || status=$?
	[[ $status -eq $2 ]] || fail "plan $1: exit status $status, want $2"
	checks=$((checks + 1))
}

# call answers what a request of AWS JSON gets: call TARGET BODY.
call() {
	curl --silent --show-error "$endpoint" -H "X-Amz-Target: AmazonSQS.$1" -H 'Content-Type: application/x-amz-json-1.0' -d "$2"
}

output() { tf output -raw "$1"; }

for round in first second; do
	TF_VAR_changed=false
	step "$round apply" apply -auto-approve
	plan "after the $round apply" 0
	[[ $(output same) == true ]] || fail "a data source differs from its resource"
	TF_VAR_changed=true
	plan "of a change" 2
	step "apply of a change" apply -auto-approve
	plan "after the change" 0
	[[ $(output same) == true ]] || fail "a data source differs from its resource"
	call DeleteQueue "{\"QueueUrl\":\"$(output queue_url)\"}" >/dev/null
	plan "after a queue was deleted" 2
	step "apply of what was deleted" apply -auto-approve
	plan "after the second making" 0
	step "destroy" destroy -auto-approve
	[[ -z $(tf state list) ]] || fail "resources are left"
	[[ $(call ListQueues "{\"QueueNamePrefix\":\"$TF_VAR_prefix\"}") != *QueueUrls* ]] || fail "queues are left"
done
rm -rf "$work"
echo "terraform: $checks steps passed"
