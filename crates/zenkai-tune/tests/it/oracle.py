# Drives the loader of an installed tuned and prints what it makes of profiles, for comparison with ours.
#
# Standard input: a list of worlds, each with "files" (path to text), "virt" (what virt-what prints) and "loads" (lists
# of profile names). Standard output: for each load the merged profile, or the error. Argument: tuned's root directory.

import builtins
import glob
import json
import logging
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(sys.argv[1], "usr/lib/python3/dist-packages"))

import tuned.profiles as profiles
from tuned.profiles.exceptions import InvalidProfileException
from tuned.profiles.variables import Variables
from tuned.utils.commands import commands

logging.disable(logging.CRITICAL)
real_open, real_exists, real_glob = builtins.open, os.path.exists, glob.iglob
root, virt = None, ""


def inside(path):
    """Files of variables and the machine's CPUs are the world's too."""
    if isinstance(path, str) and path.startswith(("/etc/", "/sys/")) and root is not None:
        return root + path
    return path


def execute(self, args, *rest, **named):
    """No program is run: what a profile wants of one stays as it is written."""
    return (0, virt) if args == ["virt-what"] else (1, "")


builtins.open = lambda path, *rest, **named: real_open(inside(path), *rest, **named)
os.path.exists = lambda path: real_exists(inside(path))
glob.iglob = lambda pattern: real_glob(inside(pattern))
commands.execute = execute


def shown(unit):
    """The priority is taken out of the options and sorted by when the units are used, not by the loader."""
    about = {
        "priority": int(unit.options.pop("priority", 0)),
        "type": unit.type,
        "enabled": unit.enabled,
        "devices": unit.devices,
        "devices_udev_regex": unit.devices_udev_regex,
        "cpuinfo_regex": unit.cpuinfo_regex,
        "uname_regex": unit.uname_regex,
        "script_pre": unit.script_pre,
        "script_post": unit.script_post,
    }
    return [unit.name, about, [list(option) for option in unit.options.items()]]


def load(names):
    variables = Variables()
    locator = profiles.Locator([root + "/usr/lib/tuned", root + "/etc/tuned"])
    loader = profiles.Loader(locator, profiles.Factory(), profiles.Merger(), None, variables)
    try:
        profile = loader.load(names)
    except InvalidProfileException as error:
        return {"error": str(error.args[0])}
    except Exception as error:
        return {"crash": repr(error)}
    values = [[name, value] for name, value in variables.get_env().items()]
    units = sorted((shown(unit) for unit in profile.units.values()), key=lambda unit: unit[1]["priority"])
    return {"units": units, "variables": values}


answers = []
for world in json.load(sys.stdin):
    root, virt = tempfile.mkdtemp(), world["virt"]
    for path, text in world["files"].items():
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        with real_open(root + path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    for names in world["loads"]:
        answers.append(json.loads(json.dumps(load(names)).replace(root, "")))
    shutil.rmtree(root)
json.dump(answers, sys.stdout)
