"""The application of celery_check.py: both it and the worker load it."""

import os

from celery import Celery
from kombu import Queue

prefix = os.environ["CHECK_PREFIX"]
app = Celery("check")
app.conf.update(
    broker_url=os.environ["CHECK_BROKER"],
    broker_transport_options={
        "region": "us-east-1",
        "is_secure": False,
        "visibility_timeout": 5,
        "wait_time_seconds": 1,
        "queue_name_prefix": prefix + "-",
    },
    broker_connection_retry_on_startup=True,
    result_backend=os.environ["CHECK_RESULTS"],
    task_default_queue="tasks",
    task_queues=[Queue("tasks"), Queue("ordered.fifo")],
    worker_enable_remote_control=False,
    worker_prefetch_multiplier=4,
)


@app.task
def add(x, y):
    return x + y


@app.task(bind=True, max_retries=3)
def third_time(self):
    """Fails twice. A retry is a message with a delay."""
    if self.request.retries < 2:
        raise self.retry(countdown=1)
    return self.request.retries


@app.task(acks_late=True, reject_on_worker_lost=True)
def lost_once(path):
    """Its worker dies with the first attempt: the message is not acknowledged."""
    if not os.path.exists(path):
        with open(path, "w"):
            pass
        os._exit(1)
    return "again"


@app.task
def note(path, number):
    with open(path, "a") as file:
        print(number, file=file)
