"""Runs the two images as a person, JupyterHub and Binder would, and looks at what they do. Called by test-images.sh.

usage: check_images.py --podman "podman ..." [--libcuda FOLDER]     with a libcuda.so.1 that simulates cards
"""

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1.5e9  # bytes of the image without CUDA
open_url = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

# A JupyterHub that starts the image's server for a user, without the proxy, which no check here goes through.
HUB = """
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    should_start = False
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.routes = {}
    async def add_route(self, routespec, target, data):
        self.routes[routespec] = {"routespec": routespec, "target": target, "data": data}
    async def delete_route(self, routespec):
        self.routes.pop(routespec, None)
    async def get_all_routes(self):
        return self.routes

c = get_config()
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.hub_port = %(hub)d
c.JupyterHub.bind_url = "http://127.0.0.1:%(proxy)d"
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.cookie_secret_file = "/tmp/hub-cookie"
c.SimpleLocalProcessSpawner.home_dir_template = "/home/{username}"
c.Spawner.cmd = ["start-notebook.sh"]
c.Spawner.http_timeout = 60
c.Spawner.port = %(server)d
c.JupyterHub.services = [{"name": "check", "api_token": "%(token)s"}]
c.JupyterHub.load_roles = [{"name": "check", "services": ["check"], "scopes": ["admin:users", "admin:servers", "access:servers"]}]
"""


class Fault(Exception):
    pass


def must(condition, what):
    if not condition:
        raise Fault(what)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(url, token=None, method="GET", body=None):
    """The status and the text of an answer; status 0 if there was none."""
    request = urllib.request.Request(url, method=method, data=body)
    if token:
        request.add_header("Authorization", "token " + token)
    try:
        with open_url(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as err:
        return err.code, err.read().decode(errors="replace")
    except OSError as err:
        return 0, str(err)


class Engine:
    def __init__(self, podman, scratch):
        self.podman, self.scratch, self.count, self.running = shlex.split(podman), scratch, 0, []

    def call(self, *args, check=True, merge=False, limit=180):
        done = subprocess.run(
            self.podman + list(args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if merge else subprocess.PIPE, text=True, timeout=limit
        )
        if check and done.returncode:
            raise Fault(f"{shlex.join(args)}: exit status {done.returncode}\n{done.stdout}{done.stderr or ''}")
        return done

    def flags(self):
        # Limits that any root may set; crun's own need a capability that not every root has.
        return ["--cgroups=disabled", "--network=host", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1000:1000"]

    def once(self, image, *command, flags=(), check=True):
        """Runs a command through the image's entry point; what it printed, its errors last."""
        done = self.call("run", "--rm", *self.flags(), *flags, image, *command, check=check)
        return done if not check else done.stdout.strip()

    def start(self, image, *command, flags=()):
        self.count += 1
        name = f"gpunotes-check-{self.count}"
        self.call("run", "--detach", "--name", name, *self.flags(), *flags, image, *command)
        self.running.append(name)
        return name

    def logs(self, name):
        return self.call("logs", name, merge=True).stdout

    def wait_for(self, name, what, ready, limit=90):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            got = ready()
            if got:
                return got
            if self.call("inspect", "--format", "{{.State.Running}}", name).stdout.strip() != "true":
                break
            time.sleep(0.3)
        raise Fault(f"{name}: {what} did not come about\n{self.logs(name)}")

    def stop(self, name):
        """Asks it to stop as an engine does, with SIGTERM; the seconds that took and the exit status."""
        began = time.monotonic()
        self.call("stop", "--time", "20", name)
        took = time.monotonic() - began
        status = int(self.call("inspect", "--format", "{{.State.ExitCode}}", name).stdout)
        self.remove(name)
        return took, status

    def remove(self, name):
        self.call("rm", "--force", "--time", "1", name, check=False)
        self.running.remove(name)


def config(engine, image):
    """What the image says of itself."""
    about = json.loads(engine.call("image", "inspect", image).stdout)[0]
    c = about["Config"]
    must(c["User"] == "1000", f"its user is {c['User']!r}")
    must("8888/tcp" in c["ExposedPorts"], f"it exposes {c['ExposedPorts']}")
    must(c["Entrypoint"][0] == "tini", f"its entry point is {c['Entrypoint']}")
    must(c.get("Healthcheck", about.get("Healthcheck"))["Test"], "it has no health check")
    must(about["Size"] < LIMIT, f"it has {about['Size'] / 1e6:.0f} MB")
    return f"{about['Size'] / 1e6:.0f} MB, user {c['User']}"


def contents(engine, image):
    """Neither Go nor a compiler is in it, nothing of NVIDIA's, nothing left over of the build."""
    found = engine.once(
        image, "bash", "-c",
        "command -v go gcc cc git; find / -xdev \\( -name go -o -name gofmt -o -iname '*libcuda*' -o -iname '*nvidia*' -o -name cuda.h \\) -not -type d 2>/dev/null; ls -A /tmp; true",
    )  # fmt: skip
    must(not found, "it contains\n" + found)
    return "no Go, no compiler, nothing of NVIDIA's"


def linked_pages():
    """What the notebooks link to beside each other."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    pages = set(re.findall(r"\]\(\.\./([^)#]+)", text))
    must(pages, "the notebooks link to no pages")
    return pages


def serve(engine, image):
    """A person's run: token, health, a notebook, the end."""
    port = free_port()
    code = ROOT / "jupyter" / "lab" / "notebooks.py"
    name = engine.start(image, flags=["-e", f"JUPYTER_PORT={port}", "-v", f"{code}:/check/jupyter/lab/notebooks.py:ro"])
    token = engine.wait_for(name, "the address with the token", lambda: re.search(rf"http://127\.0\.0\.1:{port}/lab\?token=([0-9a-f]+)", engine.logs(name)))[1]
    at = f"http://127.0.0.1:{port}"
    status = engine.wait_for(name, "an answer", lambda: ask(at + "/api/kernelspecs")[0])
    must(status == 403, f"without the token it answers {status}")
    must(ask(at + "/api/kernelspecs", "wrong")[0] == 403, "a wrong token is let in")
    status, text = ask(at + "/api/kernelspecs", token)
    must(status == 200, f"with the token it answers {status}: {text}")
    specs = json.loads(text)
    must(specs["default"] == "gpunotes" and "gpunotes" in specs["kernelspecs"], f"its kernels are {text}")
    must(ask(at + "/lab", token)[0] == 200, "JupyterLab does not answer")
    must("05-distance-mesh.ipynb" in ask(at + "/api/contents/notebooks", token)[1], "the notebooks are not shown")
    for page in linked_pages():
        must(ask(f"{at}/api/contents/{page}", token)[0] == 200, f"a notebook links to {page}, which is not there")
    engine.call("healthcheck", "run", name)
    status, text = ask(at + "/api/kernels", token, "POST", b"{}")
    must(status == 201, f"no kernel starts: {text}")

    who = engine.call("exec", name, "bash", "-c", "id -u; cat /proc/1/comm; stat -c %U /proc/$(pgrep -o gophernotes || ls -d /proc/[0-9]* | while read p; do grep -qa gophernotes $p/cmdline && basename $p && break; done); touch work/x notebooks/x && pip --version").stdout.split("\n")
    must(who[:3] == ["1000", "tini", "jovyan"], f"it runs as {who}")
    done = engine.call("exec", name, "python3", "/check/jupyter/lab/notebooks.py", "compare", "05", "--folder", "/home/jovyan/notebooks", "--artefacts", "/tmp/artefacts", merge=True)
    ran = re.search(r"ok +05-\S+ +([0-9.]+)", done.stdout)
    must(ran, done.stdout)
    took, status = engine.stop(name)
    must(took < 15 and status == 0, f"after SIGTERM it took {took:.1f} s and ended with {status}")
    done = engine.once(image, "healthcheck.py", check=False)
    must(done.returncode == 1, f"without a server, it is healthy: {done.stdout}")
    return f"token, health; notebook 05 executed in {ran[1]} s and compared; SIGTERM ends it in {took:.1f} s"


def users(engine, image):
    """The user whom docker-stacks' variables ask for, and files on volumes."""
    work = engine.scratch / "work"
    work.mkdir()
    (work / "theirs").write_text("")
    os.chown(work / "theirs", 1000, 100)
    os.chown(work, 4321, 5000)
    try:
        said = engine.once(
            image, "bash", "-c", "id -un; id -u; id -g; id -Gn; echo $HOME; pwd; touch ~/work/mine ~/notebooks/mine && stat -c %u:%g ~ ~/notebooks/00-tour.ipynb; jupyter lab --version >/dev/null && echo runs",
            flags=["--user", "root", "-e", "NB_USER=alice", "-e", "NB_UID=4321", "-e", "NB_GID=5000", "-v", f"{work}:/home/alice/work"],
        )  # fmt: skip
        want = ["alice", "4321", "5000", "alice users", "/home/alice", "/home/alice", "4321:5000", "4321:5000", "runs"]
        must(said.split("\n") == want, f"NB_USER=alice NB_UID=4321 NB_GID=5000: {said}")
        owners = {p.name: (p.stat().st_uid, p.stat().st_gid) for p in work.iterdir()}
        must(owners == {"theirs": (1000, 100), "mine": (4321, 5000)}, f"files on the volume belong to {owners}")
    finally:
        shutil.rmtree(work)
    said = engine.once(image, "bash", "-c", "id -u; touch ~/x && echo $HOME", flags=["--user", "2222", "--group-add", "users"])
    must(said.split("\n") == ["2222", "/home/jovyan"], f"--user 2222 --group-add users: {said}")
    said = engine.once(image, "bash", "-c", "id -u; ls ~/notebooks | head -n 1; echo $HOME", flags=["--user", "2222:2222"])
    must(said.split("\n") == ["2222", "00-tour.ipynb", "/tmp/home-2222"], f"--user 2222:2222: {said}")
    said = engine.once(image, "bash", "-c", "id -u; umask; ls ~/notebooks | head -n 1", flags=["--user", "root", "-e", "CHOWN_HOME=yes", "-e", "NB_UMASK=002", "--tmpfs", "/home/jovyan"])
    must(said.split("\n") == ["1000", "0002", "00-tour.ipynb"], f"CHOWN_HOME=yes, an empty home: {said}")
    return "NB_USER, NB_UID, NB_GID, any --user; volumes keep their owners, notebooks come back"


def hub(engine, image):
    """A real JupyterHub starts the server for a user and is asked who may see it."""
    ports = {"hub": free_port(), "proxy": free_port(), "server": free_port(), "token": "check-" + "0" * 32}
    settings = engine.scratch / "jupyterhub_config.py"
    settings.write_text(HUB % ports)
    name = engine.start(image, "jupyterhub", "-f", "/check/jupyterhub_config.py", flags=["-v", f"{settings}:/check/jupyterhub_config.py:ro"])
    api = f"http://127.0.0.1:{ports['hub']}/hub/api"
    engine.wait_for(name, "the hub", lambda: ask(api)[0] == 200)
    status, text = ask(api + "/users/jovyan", ports["token"], "POST")
    must(status == 201, f"the user: {status} {text}")
    status, text = ask(api + "/users/jovyan/server", ports["token"], "POST", b"{}")
    must(status in (201, 202), f"the server: {status} {text}\n{engine.logs(name)}")
    at = f"http://127.0.0.1:{ports['server']}/user/jovyan"

    def spawned():
        return ask(at + "/api")[0] == 200

    engine.wait_for(name, "the server", spawned)
    status, text = ask(at + "/api/kernelspecs", ports["token"])
    must(status == 200 and "gpunotes" in json.loads(text)["kernelspecs"], f"the hub's token: {status} {text}")
    must(ask(at + "/api/kernelspecs")[0] in (401, 403), "without a token it answers")
    must(ask(at + "/lab", ports["token"])[0] == 200, "JupyterLab does not answer under the hub")
    engine.call("exec", name, "healthcheck.py")
    version = engine.call("exec", name, "jupyter", "labhub", "--version").stdout.strip()
    took, _ = engine.stop(name)
    return f"JupyterHub starts it and lets in whom it should (labhub {version})"


def binder(engine, image):
    """The commands of BinderHub and repo2docker, in place of the image's own."""
    for command in ("jupyter-lab", "jupyter-notebook"):
        port = free_port()
        name = engine.start(image, command, "--ip=0.0.0.0", f"--port={port}", "--ServerApp.base_url=/user/someone/", "--ServerApp.token=given")
        engine.wait_for(name, "an answer", lambda: ask(f"http://127.0.0.1:{port}/user/someone/api")[0] == 200)
        status, text = ask(f"http://127.0.0.1:{port}/user/someone/api/kernelspecs", "given")
        must(status == 200 and json.loads(text)["default"] == "gpunotes", f"{command}: {status} {text}")
        engine.call("healthcheck", "run", name)
        engine.remove(name)
    said = engine.once(image, "python3", "-c", "import jupyterlab, sys; print(sys.prefix)")
    must(said == "/opt/gpunotes", f"python3 is of {said}")
    return "jupyter-lab, jupyter-notebook, python3 as Binder calls them"


def cuda(engine, image, libcuda):
    """The kernel with CUDA starts without a driver, and finds one that is brought in."""
    environment = json.loads(engine.call("image", "inspect", image).stdout)[0]["Config"]["Env"]
    must("NVIDIA_VISIBLE_DEVICES=all" in environment and "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in environment, f"its environment is {environment}")
    kernel = "/opt/gpunotes/share/jupyter/kernels/gpunotes/gophernotes"
    said = json.loads(engine.once(image, kernel, "--devices"))
    must(said["cuda"] and not said["devices"], f"without a driver: {said}")
    if not libcuda:
        return "starts without a driver (with one: not run, without gcc there is no libcuda that simulates)"
    # where the toolkit puts the driver's libraries
    mounts = [flag for name in ("libcuda.so.1", "gpunotes-mock") for flag in ("-v", f"{libcuda}/{name}:/usr/lib/x86_64-linux-gnu/{name}:ro")]
    said = json.loads(engine.once(image, kernel, "--devices", flags=mounts))
    must(said["cuda"] and said["devices"] and said["devices"][0]["name"] == "cuda:0", f"with a driver: {said}")
    return "starts without a driver; sees the cards of one brought in (a simulated one)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--podman", default="podman")
    parser.add_argument("--libcuda")
    args = parser.parse_args()
    checks = [
        ("gpunotes", config), ("gpunotes", contents), ("gpunotes", serve), ("gpunotes", users), ("gpunotes", hub), ("gpunotes", binder),
        ("gpunotes:cuda", config), ("gpunotes:cuda", contents), ("gpunotes:cuda", serve), ("gpunotes:cuda", cuda),
    ]  # fmt: skip
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gpunotes-images-") as scratch:
        engine = Engine(args.podman, Path(scratch))
        os.chmod(scratch, 0o755)
        probe = engine.call("run", "--rm", *engine.flags(), "localhost/stand-in", "true", check=False)  # the base: it is not what is tested
        if probe.returncode:
            print(f"== images: built but not run, no container starts here: {probe.stderr.strip()}")
            return 0
        for image, check in checks:
            began = time.monotonic()
            try:
                said = check(engine, "localhost/" + image, *([args.libcuda] if check is cuda else []))
                print(f"ok   {image} {check.__name__}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
            except (Fault, subprocess.TimeoutExpired) as err:
                failed += 1
                print(f"FAIL {image} {check.__name__}: {err}", flush=True)
            finally:
                for name in list(engine.running):
                    engine.remove(name)
    print(f"images: {len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
