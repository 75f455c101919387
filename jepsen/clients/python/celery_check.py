"""Checks an SQS endpoint through Celery and its SQS transport (kombu):
celery_check.py ENDPOINT. A worker runs beside it as a process of its own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from urllib.parse import urlsplit

endpoint = sys.argv[1]
work = tempfile.mkdtemp(prefix="celery-check-")
os.makedirs(f"{work}/results")
os.environ["CHECK_PREFIX"] = f"celery-{uuid.uuid4().hex[:8]}"
os.environ["CHECK_BROKER"] = f"sqs://test:test@{urlsplit(endpoint).netloc}"
os.environ["CHECK_RESULTS"] = f"file://{work}/results"

import boto3  # noqa: E402
import celery  # noqa: E402
import kombu  # noqa: E402

import celery_app as tasks  # noqa: E402

checks = 0


def check(what, got, want):
    global checks
    if got != want:
        sys.exit(f"celery: {what}: got {got!r}, want {want!r}\n" + open(f"{work}/worker.log").read()[-4000:])
    checks += 1


def worker():
    return subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "--pool", "solo", "--without-mingle", "--without-gossip",
         "--loglevel", "INFO"],
        cwd=os.path.dirname(os.path.abspath(__file__)), stdout=open(f"{work}/worker.log", "a"), stderr=subprocess.STDOUT,
    )


def stop(process):
    process.terminate()
    check("exit of the worker", process.wait(timeout=60), 0)


def flow():
    sent = [tasks.add.delay(i, 100) for i in range(25)]
    check("sums", [result.get(timeout=60) for result in sent], [i + 100 for i in range(25)])
    check("retries", tasks.third_time.delay().get(timeout=60), 2)
    for i in range(10):
        tasks.note.apply_async((f"{work}/order", i), queue="ordered.fifo", MessageGroupId="one")
    tasks.add.apply_async((1, 1), queue="ordered.fifo", MessageGroupId="one").get(timeout=60)
    check("order", open(f"{work}/order").read().split(), [str(i) for i in range(10)])


def lost():
    """A task whose worker dies comes back after the visibility timeout."""
    result = tasks.lost_once.delay(f"{work}/lost")
    first.wait(timeout=60)
    second = worker()
    check("after the loss", result.get(timeout=60), "again")
    return second


def emptied():
    sqs = boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"]
    for url in sqs.list_queues(QueueNamePrefix=tasks.prefix)["QueueUrls"]:
        got = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        check(f"left in {url}", [got[name] for name in names], ["0", "0", "0"])
        sqs.delete_queue(QueueUrl=url)


first = worker()
running = first
try:
    flow()
    running = lost()
    stop(running)
    emptied()
finally:
    running.kill()
    shutil.rmtree(work)
print(f"celery ({celery.__version__}, kombu {kombu.__version__}): ok {checks} checks")
