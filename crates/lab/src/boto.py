"""Calls AWS through boto3: a request per line of stdin, an answer per line of stdout.

Request: {"service", "operation" (snake_case), "params", "endpoint", "region", "account"}.
Answer:  {"ok": result} or {"error": {"code", "message"}}.
"""

import functools
import json
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

CONFIG = Config(
    connect_timeout=5,
    read_timeout=30,
    retries={"total_max_attempts": 1},
    s3={"addressing_style": "path"},
)


@functools.cache
def client(service, endpoint, region, account):
    # ministack takes an access key of twelve digits for the account; without one, the environment's counts.
    return boto3.client(
        service, endpoint_url=endpoint, region_name=region, config=CONFIG, aws_access_key_id=account,
        aws_secret_access_key=account and "test",
    )


def plain(value):
    """What JSON cannot hold: bodies and bytes as text, times as ISO 8601."""
    if hasattr(value, "read"):
        value = value.read()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def answer(request):
    try:
        api = client(request["service"], request["endpoint"], request["region"], request["account"])
        result = getattr(api, request["operation"])(**request["params"])
    except ClientError as error:
        return {"error": {"code": error.response["Error"]["Code"], "message": str(error)}}
    except Exception as error:
        return {"error": {"code": type(error).__name__, "message": str(error)}}
    result.pop("ResponseMetadata", None)
    return {"ok": result}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line)), default=plain), flush=True)
