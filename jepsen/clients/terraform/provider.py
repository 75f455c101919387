"""Leaves of the provider's source, in the folder given, the services SQS and SNS alone.

The provider lists its services in one generated file and has a method for the client
of each in another. What both name of other services goes, so that nothing of them is
compiled; all that remains is as it was.
"""

import pathlib
import re
import sys

MODULE = "github.com/hashicorp/terraform-provider-aws/internal/service/"
SDK = "github.com/aws/aws-sdk-go-v2/service/"
PACKAGES = {"sqs", "sns"}
CLIENTS = {"SQS", "SNS", "IAM", "S3"}  # sns imports iam; the core has a client for S3


def keep_services(text):
    text = re.sub(rf'\t"{MODULE}(\w+)"\n', lambda found: found[0] if found[1] in PACKAGES else "", text)
    return re.sub(r"\t\t(\w+)\.ServicePackage\(ctx\),\n", lambda found: found[0] if found[1] in PACKAGES else "", text)


def keep_clients(text):
    method = r"\nfunc \(c \*AWSClient\) (\w+)Client\(.*\n(?:.*\n)*?\}\n"
    text = re.sub(method, lambda found: found[0] if found[1] in CLIENTS else "", text)
    used = set(re.findall(r"\*(\w+)\.Client", text))
    named = rf'\t(?:(\w+) )?"{SDK}(\w+)"\n'
    return re.sub(named, lambda found: found[0] if (found[1] or found[2]) in used else "", text)


root = pathlib.Path(sys.argv[1]) / "internal"
for file, keep in {
    root / "provider/sdkv2/service_packages_gen.go": keep_services,
    root / "conns/awsclient_gen.go": keep_clients,
}.items():
    file.write_text(keep(file.read_text()))
