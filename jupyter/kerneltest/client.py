"""A small front end: sends cells to a kernel and collects what comes back."""
import queue
import time

from jupyter_client.manager import KernelManager

TIMEOUT = 30


class Outcome:
    """Everything that one request led to."""

    def __init__(self, reply, messages):
        self.reply = reply
        self.messages = messages

    @property
    def status(self):
        return self.reply["content"]["status"]

    def of(self, kind):
        return [m["content"] for m in self.messages if m["header"]["msg_type"] == kind]

    def text(self, name="stdout"):
        return "".join(c["text"] for c in self.of("stream") if c["name"] == name)

    @property
    def data(self):
        """MIME bundle of the value below the cell, None if there is none."""
        results = self.of("execute_result")
        assert len(results) <= 1
        return results[0]["data"] if results else None

    @property
    def plain(self):
        return self.data and self.data["text/plain"]

    @property
    def error(self):
        errors = self.of("error")
        assert len(errors) == (1 if self.status == "error" else 0)
        return errors[0] if errors else None


class Notebook:
    def __init__(self, kernel, **popen):
        self.manager = KernelManager(kernel_name=kernel)
        self.popen = popen

    def __enter__(self):
        begin = time.time()
        self.manager.start_kernel(**self.popen)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)
        self.start_seconds = time.time() - begin
        return self

    def __exit__(self, *_):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def memory(self):
        """MB in use by the kernel and its children."""
        total, todo = 0, [self.manager.provisioner.process.pid]
        while todo:
            pid = todo.pop()
            try:
                for line in open(f"/proc/{pid}/status"):
                    if line.startswith("VmRSS"):
                        total += int(line.split()[1])
                todo += [int(c) for c in open(f"/proc/{pid}/task/{pid}/children").read().split()]
            except OSError:
                pass
        return total / 1024

    def send(self, code, **kwargs):
        return self.client.execute(code, **kwargs)

    def collect(self, msg_id, timeout=TIMEOUT):
        """Waits for the reply and the idle status of a request."""
        messages, reply, idle, end = [], None, False, time.time() + timeout
        while reply is None or not idle:
            left = end - time.time()
            if left <= 0:
                raise TimeoutError(f"reply={reply} idle={idle} messages={messages}")
            try:
                m = self.client.get_iopub_msg(timeout=min(left, 0.05))
                if m["parent_header"].get("msg_id") == msg_id:
                    assert not idle, f"{m['header']['msg_type']} after idle"
                    messages.append(m)
                    idle = m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
            except queue.Empty:
                pass
            while True:
                try:
                    m = self.client.get_shell_msg(timeout=0)
                except queue.Empty:
                    break
                if m["parent_header"].get("msg_id") == msg_id:
                    reply = m
        return Outcome(reply, messages)

    def run(self, code, timeout=TIMEOUT, **kwargs):
        return self.collect(self.send(code, **kwargs), timeout)

    def ok(self, code, **kwargs):
        got = self.run(code, **kwargs)
        assert got.status == "ok", got.error
        return got

    def fails(self, code, **kwargs):
        got = self.run(code, **kwargs)
        assert got.status == "error", (got.reply, got.messages)
        return got

    def drain(self, msg_id, seconds):
        """The messages for an old request that come within some seconds."""
        got, end = [], time.time() + seconds
        while time.time() < end:
            try:
                m = self.client.get_iopub_msg(timeout=max(0.01, end - time.time()))
            except queue.Empty:
                break
            if m["parent_header"].get("msg_id") == msg_id:
                got.append(m)
        return got

    def control(self, kind, content=None, timeout=TIMEOUT):
        """Sends a request on the control channel and returns the reply from there."""
        msg = self.client.session.msg(kind, content or {})
        self.client.control_channel.send(msg)
        end = time.time() + timeout
        while time.time() < end:
            try:
                reply = self.client.get_control_msg(timeout=1)
            except queue.Empty:
                continue
            if reply["parent_header"].get("msg_id") == msg["header"]["msg_id"]:
                return reply
        raise TimeoutError(kind)
