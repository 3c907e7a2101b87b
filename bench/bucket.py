"""Object store with the delay of a bucket, for Pulumi's state: the part of S3's API that it needs.

Answers to (simulated): GetObject, HeadObject, PutObject, CopyObject, DeleteObject and ListObjectsV2
    of Amazon S3 (https://docs.aws.amazon.com/AmazonS3/latest/API), as gocloud.dev/blob/s3blob asks
    for them. Signatures are not verified, and a list has no pages.
"""

import contextlib
import hashlib
import http.server
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from xml.sax.saxutils import escape

DELAY_SECONDS = 0.1
"""Time before each answer: a call to a bucket of another region."""

BUCKET = "state"


class Bucket:
    """The objects and a count of calls by method.

    Attributes:
        url: Pulumi's URL of the backend.
        environment: credentials that the client needs and nobody checks.
        calls: number of calls.
    """

    environment: Mapping[str, str] = {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_REGION": "us-east-1",
        # Answers have no checksums, and the client would warn of each.
        "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    }

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.lock = threading.Lock()
        self.calls = 0
        self.url = ""


@contextlib.contextmanager
def served(delay: float = DELAY_SECONDS) -> Iterator[Bucket]:
    """Serve a bucket on the loopback interface for the block."""
    bucket = Bucket()

    class Handler(_Handler):
        pass

    Handler.bucket = bucket
    Handler.delay = delay
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    bucket.url = (
        f"s3://{BUCKET}?endpoint=http://127.0.0.1:{server.server_port}&use_path_style=true&disable_https=true"
        "&region=us-east-1"
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield bucket
    finally:
        server.shutdown()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket
    delay: float

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""

    def _key(self) -> str:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        return path.removeprefix(f"/{BUCKET}").lstrip("/")

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        time.sleep(self.delay)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            return _signed_chunks(data)
        return data

    def do_GET(self) -> None:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        with self.bucket.lock:
            self.bucket.calls += 1
            found = dict(self.bucket.objects)
        key = self._key()
        if not key:
            self._answer(200, _listed(found, query), Content_Type="application/xml")
        elif key in found:
            data = found[key]
            headers = {
                "ETag": _tag(data),
                "Last_Modified": format_datetime(datetime.now(UTC), usegmt=True),
            }
            self._answer(200, data, **headers)
        else:
            self._answer(404, _error("NoSuchKey"), Content_Type="application/xml")

    do_HEAD = do_GET  # noqa: N815 - http.server's names

    def do_PUT(self) -> None:
        data = self._body()
        source = self.headers.get("x-amz-copy-source")
        with self.bucket.lock:
            self.bucket.calls += 1
            if source:
                name = urllib.parse.unquote(source).lstrip("/").removeprefix(f"{BUCKET}/")
                copied = self.bucket.objects.get(name)
                if copied is None:
                    self._answer(404, _error("NoSuchKey"), Content_Type="application/xml")
                    return
                data = copied
            self.bucket.objects[self._key()] = data
        result = (
            f"<CopyObjectResult><ETag>{escape(_tag(data))}</ETag></CopyObjectResult>".encode()
            if source
            else b""
        )
        self._answer(200, result, ETag=_tag(data))

    def do_DELETE(self) -> None:
        with self.bucket.lock:
            self.bucket.calls += 1
            self.bucket.objects.pop(self._key(), None)
        self._answer(204)


def _listed(objects: dict[str, bytes], query: dict[str, list[str]]) -> bytes:
    prefix = query.get("prefix", [""])[0]
    delimiter = query.get("delimiter", [""])[0]
    names = sorted(name for name in objects if name.startswith(prefix))
    folders = set()
    if delimiter:
        for name in list(names):
            head, found, _ = name[len(prefix) :].partition(delimiter)
            if found:
                folders.add(prefix + head + delimiter)
                names.remove(name)
    moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}"
    contents = "".join(
        f"<Contents><Key>{escape(name)}</Key><LastModified>{moment}</LastModified><ETag>{_tag(objects[name])}</ETag>"
        f"<Size>{len(objects[name])}</Size></Contents>"
        for name in names
    )
    common = "".join(
        f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        for name in sorted(folders)
    )
    return (
        f"<ListBucketResult><Name>{BUCKET}</Name><KeyCount>{len(names) + len(folders)}</KeyCount>"
        f"<IsTruncated>false</IsTruncated>{contents}{common}</ListBucketResult>"
    ).encode()


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


def _signed_chunks(data: bytes) -> bytes:
    """Return the content of signed chunks: `SIZE;chunk-signature=…`, the data, a newline."""
    content = b""
    at = 0
    while True:
        end = data.index(b"\r\n", at)
        size = int(data[at:end].partition(b";")[0], 16)
        if not size:
            return content
        content += data[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
