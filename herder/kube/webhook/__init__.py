"""Our rules on a real API server: asked by it, before it stores an object of one of our kinds (docs/webhook.md).

reviews.py       the question and the answer, as AdmissionReview v1
deciding.py      what we answer; pure
patches.py       what defaulting changed, as a JSON patch
rules.py         the place for rules that look at other objects, too
server.py        HTTP over TLS
keeping.py       the certificates: when which is renewed; pure
certificates.py  the Secret that they are kept in
registration.py  what tells the API server to ask us
webhook.py       all of it, wired
"""

from herder.kube.webhook.registration import Registration
from herder.kube.webhook.settings import BadUrl, Settings
from herder.kube.webhook.webhook import Webhook

__all__ = ["BadUrl", "Registration", "Settings", "Webhook"]
