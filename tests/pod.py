#!/usr/bin/python3
"""The pod of packaging/kubernetes/daemonset.yaml.

    pod.py MANIFEST check UNIT CARGO      holds it against the unit of systemd and the version of the program
    pod.py MANIFEST config                prints the configuration that it gives the program
"""
import re
import sys

import yaml


def read(path):
    with open(path) as file:
        return file.read()


def of_kind(documents, kind):
    return next(document for document in documents if document["kind"] == kind)


def capabilities(container):
    return container["securityContext"]["capabilities"]["add"]


def check(pod, container, unit, cargo):
    def holds(what, condition):
        if not condition:
            sys.exit("pod.py: the DaemonSet does not hold: " + what)

    context = container["securityContext"]
    allowed = re.search("^CapabilityBoundingSet=(.*)$", read(unit), re.M).group(1).replace("CAP_", "").split()
    holds("no capability that the unit has not", set(capabilities(container)) <= set(allowed))
    holds("all others are dropped", context["capabilities"]["drop"] == ["ALL"])
    holds("nothing is written but the sockets", context["readOnlyRootFilesystem"])
    holds("no privileged container", not context["privileged"] and not context["allowPrivilegeEscalation"])
    holds("the engine's filter of system calls", context["seccompProfile"] == {"type": "RuntimeDefault"})
    holds("neither the node's network nor its IPC", not pod.get("hostNetwork") and not pod.get("hostIPC"))
    writable = [mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    holds("no path of the node can be written", writable == ["run"])
    version = re.search('^version = "(.*)"$', read(cargo), re.M).group(1)
    holds("the image is of this version", container["image"] == "scx-cosched:" + version)


def main():
    manifest, what, *rest = sys.argv[1:]
    documents = list(yaml.safe_load_all(read(manifest)))
    pod = of_kind(documents, "DaemonSet")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    if what == "check":
        check(pod, container, *rest)
    elif what == "config":
        print(of_kind(documents, "ConfigMap")["data"]["config.toml"], end="")


main()
