#!/usr/bin/python3
"""Does a Jupyter server of this container answer? Exit status 0 if so. Its own notes say under which address."""

import glob
import json
import os
import ssl
import sys
import urllib.request

places = [os.environ.get("JUPYTER_RUNTIME_DIR", "")]
places += [home + "/.local/share/jupyter/runtime" for home in [os.environ.get("HOME", "/root"), *glob.glob("/home/*"), *glob.glob("/tmp/home-*")]]
unverified = ssl._create_unverified_context()  # a certificate for another name than localhost is no illness
open_url = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)).open

said = "no server has started"
for note in {f for place in places if place for f in glob.glob(place + "/jpserver-*.json")}:
    try:  # notes of dead servers stay behind on a volume
        with open(note) as f:
            server = json.load(f)
        scheme = "https" if server.get("secure") else "http"
        with open_url(f"{scheme}://127.0.0.1:{server['port']}{server['base_url']}api", timeout=4) as answer:
            print("Jupyter server", json.load(answer)["version"])
            sys.exit(0)
    except (OSError, ValueError, KeyError) as err:
        said = f"{os.path.basename(note)}: {err}"
print(said)
sys.exit(1)
