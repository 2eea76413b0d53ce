"""An object store for tests: moto's S3, which checks the signatures of one user's keys.

It prints its port and the keys, and then carries out what it is told line by line, each answered by a line of JSON:
keys PREFIX, put KEY TEXT, delete KEY, stop, resume. It ends with its input.
"""

import json
import os
import sys

# As many requests as it takes to make the user and the bucket; all others have to be signed.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "values"


def start(port):
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    return server


def client(service, port, key="none", secret="none"):
    return boto3.client(
        service,
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )


def make_user(port):
    users = client("iam", port)
    users.create_user(UserName="planner")
    allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [allowed]}
    users.put_user_policy(UserName="planner", PolicyName="all", PolicyDocument=json.dumps(policy))
    keys = users.create_access_key(UserName="planner")["AccessKey"]
    client("s3", port).create_bucket(Bucket=BUCKET)
    return keys["AccessKeyId"], keys["SecretAccessKey"]


def main():
    server = start(0)
    port = server.get_host_and_port()[1]
    key, secret = make_user(port)
    print(json.dumps({"port": port, "key": key, "secret": secret}), flush=True)
    objects = client("s3", port, key, secret)
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        answer = None
        if verb == "keys":
            listed = objects.list_objects_v2(Bucket=BUCKET, Prefix=rest)
            answer = [one["Key"] for one in listed.get("Contents", [])]
        elif verb == "put":
            name, _, text = rest.partition(" ")
            objects.put_object(Bucket=BUCKET, Key=name, Body=text.encode())
        elif verb == "delete":
            objects.delete_object(Bucket=BUCKET, Key=rest)
        elif verb == "stop":
            server.stop()
        elif verb == "resume":
            server = start(port)
        print(json.dumps(answer), flush=True)


main()
