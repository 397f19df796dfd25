"""A server of objects on this machine, as far as clients of S3 use it."""

from __future__ import annotations

import hashlib
import http.server
from email.utils import formatdate
from urllib.parse import parse_qs, unquote, urlsplit


class Objects(http.server.BaseHTTPRequestHandler):
    """Files of a folder as objects of S3, which a client reads, asks for, lists and writes."""

    protocol_version = "HTTP/1.1"
    root = None  # of a subclass
    refused = ()  # methods that nobody may use
    written = None  # paths of objects, in the order of their writing

    def do_GET(self):
        parts = urlsplit(self.path)
        path = self.root / unquote(parts.path).strip("/")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if "list-type" in query:
            return self._send(200, self._listing(path, query.get("prefix", "")))
        if not path.is_file():
            return self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
        data = path.read_bytes()
        status = 200
        if given := self.headers.get("Range"):
            first, _, last = given.removeprefix("bytes=").partition("-")
            data, status = data[int(first) : int(last or len(data)) + 1], 206
        tag = hashlib.md5(path.read_bytes()).hexdigest()
        time = formatdate(path.stat().st_mtime, usegmt=True)
        return self._send(status, data, {"ETag": f'"{tag}"', "Last-Modified": time})

    do_HEAD = do_GET

    def do_PUT(self):
        size = int(self.headers["Content-Length"])
        data = self.rfile.read(size)
        if "PUT" in self.refused:
            return self._send(403, b"<Error><Code>AccessDenied</Code></Error>")
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            data = unpacked(data)
        path = self.root / unquote(urlsplit(self.path).path).strip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if self.written is not None:
            self.written.append(path.relative_to(self.root).as_posix())
        return self._send(200, b"", {"ETag": f'"{hashlib.md5(data).hexdigest()}"'})

    def do_DELETE(self):
        (self.root / unquote(urlsplit(self.path).path).strip("/")).unlink(missing_ok=True)
        return self._send(204, b"")

    def _listing(self, bucket, prefix):
        keys = (path.relative_to(bucket).as_posix() for path in bucket.rglob("*") if path.is_file())
        found = "".join(
            f"<Contents><Key>{key}</Key><Size>1</Size></Contents>"
            for key in sorted(keys)
            if key.startswith(prefix)
        )
        return f"<ListBucketResult>{found}</ListBucketResult>".encode()

    def _send(self, status, data, headers=None):
        self.send_response(status)
        for name, value in {"Content-Length": len(data), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


def unpacked(data):
    """Return the content of a body in pieces, each after a line with its length."""
    out = b""
    while data:
        line, _, data = data.partition(b"\r\n")
        n = int(line.partition(b";")[0], 16)
        if n == 0:
            break
        out, data = out + data[:n], data[n + 2 :]
    return out
