"""In a guest: the end state of each profile by the real tuned, called as a library, and by zenkai.

The environment: WATCHED, a JSON object with the lists of watched.rs, and PROFILES. Prints a line of JSON for each profile:
what differs ("paths": [with tuned, with zenkai]), what remained after off, and how much tuned had changed at all.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, "/usr/lib/python3/dist-packages")
import tuned.daemon
import tuned.logs
from tuned.utils.global_config import GlobalConfig

# Asks for the name of the module that calls it, so not within a function.
LOG = tuned.logs.get()
WATCHED = json.loads(os.environ["WATCHED"])
PARTS = ("", "queue", "queue/iosched", "bdi")
ETHTOOL = ("-k", "-c", "-g", "-a")


def restless(path):
    return path.endswith("/uevent") or any(word in path for word in WATCHED["restless"])


def keep(path, kernel, found):
    try:
        if restless(path) or (kernel and os.stat(path).st_mode & 0o600 != 0o600):
            return
        with open(path, "rb") as file:
            content = file.read(WATCHED["longest"] + 1)
        if len(content) <= WATCHED["longest"]:
            found[path] = content.decode("utf-8", "replace")
    except OSError:
        pass


def plain_files(folder, found):
    for entry in os.scandir(folder):
        if entry.is_file(follow_symlinks=False):
            keep(entry.path, True, found)


def walk(folder, kernel, depth, found):
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        if restless(entry.path):
            continue
        if entry.is_symlink():
            for part in PARTS if depth == 0 and kernel else ():
                place = os.path.join(entry.path, part)
                if os.path.isdir(place):
                    plain_files(place, found)
        elif entry.is_dir():
            walk(entry.path, kernel, depth + 1, found)
        elif entry.is_file():
            keep(entry.path, kernel, found)


# Walking through /sys takes a guest seconds, so it is done once.
KNOWN = []


def look():
    found = {}
    if not KNOWN:
        for root in WATCHED["kernel"]:
            walk(root, True, 0, found)
        KNOWN.extend(found)
    else:
        for path in KNOWN:
            keep(path, False, found)
    for root in WATCHED["files"]:
        walk(root, False, 0, found)
    cards = sorted(card for card in os.listdir("/sys/class/net") if os.path.exists(f"/sys/class/net/{card}/device"))
    for card in cards if os.environ.get("CARDS") else ():
        for what in ETHTOOL:
            shown = subprocess.run(["ethtool", what, card], capture_output=True, text=True)
            found[f"ethtool {what} {card}"] = shown.stdout
    return found


def differences(one, other):
    return {path: [one.get(path), other.get(path)] for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def put_back(before):
    """In up to three rounds, since one value may disturb another. Gives what differed, and what still does."""
    first = left = differences(before, look())
    for _ in range(3):
        if not left:
            break
        for path, (was, _) in left.items():
            try:
                if was is None:
                    os.remove(path)
                    continue
                chosen = was.split("[")[1].split("]")[0] if was.count("\n") == 1 and was.count("[") == 1 else was
                with open(path, "w") as file:
                    file.write(chosen)
            except OSError:
                pass
        left = differences(before, look())
    return first, left


def zenkai(*words):
    done = subprocess.run(["zenkai", "profile", *words], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"


def main():
    os.makedirs("/run/tuned", exist_ok=True)
    LOG.switch_to_file("/run/tuned/log")
    config = GlobalConfig()
    config.set("dynamic_tuning", "0")
    daemon = tuned.daemon.Application(None, config).daemon
    before = look()
    for profile in os.environ["PROFILES"].split():
        daemon.set_profile(profile, True)
        daemon.start()
        applied = daemon._profile_applied.wait(60)
        theirs = look()
        daemon.stop()
        # What tuned leaves behind is not judged, but must not be taken for zenkai's.
        stuck = put_back(before)[1]
        failed = [zenkai("apply", profile)]
        ours = look()
        failed.append(zenkai("off"))
        rest, stuck_too = put_back(before)
        print(json.dumps({
            "profile": profile, "applied": applied, "failed": [why for why in failed if why],
            "tuned_changed": len(differences(before, theirs)), "watched": len(before),
            "paths": differences(theirs, ours), "rest": rest, "stuck": {**stuck, **stuck_too},
        }), flush=True)


main()
