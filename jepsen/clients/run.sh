#!/usr/bin/env bash
# Runs unmodified SQS and SNS clients against a broker: the AWS CLI, boto3 (a current
# one, which speaks AWS JSON to SQS, and an old one, which speaks AWS Query), the AWS
# SDKs for JavaScript v3 and Java v2, with their checksum validation on, and what is
# built on them: sqs-consumer and sqs-producer, Celery, Spring Cloud AWS; and
# sns-validator against a broker of its own, over https; and Terraform, when told to.
#
#   run.sh                starts bin/holdfast on a free loopback port, fresh data
#   run.sh boto3 java     only these of: cli boto3 boto3-query celery javascript consumer java spring sns-validator
#   run.sh terraform      builds Terraform and its provider first (ten minutes of processor time)
#   HOLDFAST_TERRAFORM=FOLDER run.sh terraform    with the terraform and terraform-provider-aws of the folder
#   HOLDFAST_ENDPOINT=http://127.0.0.1:4566 run.sh    against a running broker
#
# The clients are installed into .clients at the versions that are locked here,
# once for each change of a lock file.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=$root/.clients
mkdir -p "$cache"

# install NAME LOCKFILE COMMAND...: runs the command unless it ran for this lock file.
install() {
	local name=$1 lock=$2 stamp
	shift 2
	stamp=$cache/$name.installed
	cmp -s "$lock" "$stamp" && return
	echo "installing $name" >&2
	"$@" || return
	cp "$lock" "$stamp"
}

venv() { # folder requirements
	rm -rf "${cache:?}/$1"
	python3 -m venv "$cache/$1"
	"$cache/$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/python/$2"
}

npm_packages() {
	rm -rf "$cache/javascript"
	mkdir -p "$cache/javascript"
	cp "$here/javascript/package.json" "$here/javascript/package-lock.json" "$cache/javascript/"
	(cd "$cache/javascript" && npm ci --silent --no-audit --no-fund)
}

maven() { # folder arguments
	local folder=$1
	shift
	mvn --quiet --batch-mode -Dmaven.repo.local="$cache/m2" -Dclients.dir="$cache/$folder" \
		--file "$here/$folder/pom.xml" "$@" >"$cache/maven.log" 2>&1 || { cat "$cache/maven.log" >&2; return 1; }
}

jars() { # folder
	rm -rf "${cache:?}/$1"
	maven "$1" dependency:copy-dependencies -DoutputDirectory="$cache/$1/lib"
}

run_java() { # folder class
	install "$1" "$here/$1/pom.xml" jars "$1"
	maven "$1" compile
	command java -cp "$cache/$1/target/classes:$cache/$1/lib/*" "$2" "$endpoint"
}

cli() {
	install venv "$here/python/requirements.txt" venv venv requirements.txt
	"$here/cli/check.sh" "$cache/venv/bin/aws" "$endpoint"
	"$here/cli/check_sns.sh" "$cache/venv/bin/aws" "$endpoint"
}

boto3() {
	install venv "$here/python/requirements.txt" venv venv requirements.txt
	"$cache/venv/bin/python" "$here/python/check.py" boto3 "$endpoint"
	"$cache/venv/bin/python" "$here/python/check_sns.py" boto3 "$endpoint"
}

boto3-query() {
	install venv-query "$here/python/requirements-query.txt" venv venv-query requirements-query.txt
	"$cache/venv-query/bin/python" "$here/python/check.py" boto3-query "$endpoint"
	"$cache/venv-query/bin/python" "$here/python/check_sns.py" boto3-query "$endpoint"
}

celery() {
	install venv-celery "$here/python/requirements-celery.txt" venv venv-celery requirements-celery.txt
	PYTHONDONTWRITEBYTECODE=1 "$cache/venv-celery/bin/python" "$here/python/celery_check.py" "$endpoint"
}

run_node() { # program
	install javascript "$here/javascript/package-lock.json" npm_packages
	cp "$here/javascript/$1" "$cache/javascript/" # beside its node_modules
	AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED=true node "$cache/javascript/$1" "$endpoint"
}

javascript() {
	run_node check.mjs
	run_node check_sns.mjs
}

consumer() { run_node consumer.mjs; }

java() {
	run_java java holdfast.SqsCheck
	run_java java holdfast.SnsCheck
}

spring() { run_java spring holdfast.SpringCheck; }

# sns-validator fetches certificates over https only, and from the host that it is
# told: a broker with a certificate of its own, whose URLs say where it listens.
sns-validator() (
	tls=$(mktemp -d)
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tls/key.pem" -out "$tls/cert.pem" -days 2 \
		-subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
	serve --tls-cert "$tls/cert.pem" --tls-key "$tls/key.pem"
	endpoint=https://localhost:${endpoint##*:}
	"$root/bin/holdfast" settings set public-url "$endpoint" --admin "$admin" >/dev/null
	NODE_EXTRA_CA_CERTS=$tls/cert.pem run_node check_sns.mjs
	rm -rf "$tls"
)

# 77, as of a test that is skipped, where Terraform is not there and cannot be built.
terraform() {
	local folder=${HOLDFAST_TERRAFORM:-$cache/terraform}
	if [[ -z ${HOLDFAST_TERRAFORM:-} ]] && ! install terraform "$here/terraform/build.sh" "$here/terraform/build.sh" "$folder"; then
		echo "terraform: skipped: it cannot be built here" >&2
		return 77
	fi
	"$here/terraform/check.sh" "$folder" "$endpoint"
}

# serve starts a broker, with more flags if given, and sets endpoint and admin to
# where it listens.
serve() {
	data=$(mktemp -d)
	mkfifo "$data/announced"
	"$root/bin/holdfast" serve --json --data "$data/node" --listen 127.0.0.1:0 --admin 127.0.0.1:0 "$@" \
		>"$data/announced" 2>"$data/log" &
	broker=$!
	trap stop EXIT
	# The first line names the API port; the rest of the output is read and dropped.
	exec 3<"$data/announced"
	read -r -u 3 announcement || true
	cat <&3 >/dev/null &
	endpoint=$(announced api)
	admin=$(announced admin)
	for _ in {1..200}; do
		"$root/bin/holdfast" status --admin "$admin" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "the broker did not become ready" >&2
	return 1
}

announced() { python3 -c 'import json, sys; print(json.loads(sys.argv[1])[sys.argv[2]])' "$announcement" "$1"; }

stop() {
	local status=$?
	kill -TERM "$broker" 2>/dev/null || true
	wait "$broker" || status=$?
	[[ $status -eq 0 ]] || tail -n 50 "$data/log" >&2
	rm -rf "$data"
	exit "$status"
}

endpoint=${HOLDFAST_ENDPOINT:-}
[[ -n $endpoint ]] || serve

clients=("$@")
[[ ${#clients[@]} -gt 0 ]] || clients=(cli boto3 boto3-query celery javascript consumer java spring sns-validator)
passed=0 failed=0 skipped=0
for client in "${clients[@]}"; do
	set +e # as a condition the client would run without -e
	(set -e; "$client")
	status=$?
	set -e
	if [[ $status -eq 0 ]]; then
		passed=$((passed + 1))
	elif [[ $status -eq 77 ]]; then
		skipped=$((skipped + 1))
	else
		failed=$((failed + 1))
		echo "$client: FAILED" >&2
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
