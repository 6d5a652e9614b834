#!/usr/bin/python3
"""The pod of packaging/kubernetes/daemonset.yaml.

    pod.py MANIFEST check UNIT CARGO      holds it against the unit of systemd and the version of the program
    pod.py MANIFEST config                prints the configuration that it gives the program
    pod.py MANIFEST bundle SECCOMP        prints what a container engine makes of it, as an OCI configuration

SECCOMP is the default filter of container engines, as Debian's golang-github-containers-common has it.
"""
import json
import re
import sys

import yaml

# What an engine gives each container, whatever it is. "cgroup" is the pod's own view, which volumes may hide.
MOUNTS = [
    ("/proc", "proc", "proc", ["nosuid", "noexec", "nodev"]),
    ("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
    ("/dev/shm", "tmpfs", "shm", ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
    ("/sys", "sysfs", "sysfs", ["nosuid", "noexec", "nodev", "ro"]),
    ("/sys/fs/cgroup", "cgroup", "cgroup", ["nosuid", "noexec", "nodev", "relatime", "ro"]),
]
MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug",
          "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
ENTRYPOINT = ["/usr/bin/scx_cosched"]


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


def seccomp(profile, kept):
    """The rules of `profile` for a container that keeps these capabilities."""
    def applies(rule):
        wanted, unwanted = rule.get("includes", {}), rule.get("excludes", {})
        arches = wanted.get("arches")
        return (all("CAP_" + cap[4:] in kept for cap in wanted.get("caps", []))
                and not any(cap in kept for cap in unwanted.get("caps", []))
                and (not arches or "amd64" in arches) and "minKernel" not in wanted)

    fields = ("names", "action", "args", "errnoRet")
    rules = [{key: rule[key] for key in fields if rule.get(key) is not None}
             for rule in profile["syscalls"] if applies(rule)]
    return {"defaultAction": profile["defaultAction"], "defaultErrnoRet": profile.get("defaultErrnoRet", 1),
            "architectures": ["SCMP_ARCH_X86_64"], "syscalls": rules}


def volume(pod, mount):
    """Where the node has what is mounted."""
    source = next(volume for volume in pod["volumes"] if volume["name"] == mount["name"])
    if "hostPath" in source:
        return source["hostPath"]["path"]
    return "/run/pod/" + mount["name"]


def bundle(pod, container, profile):
    kept = ["CAP_" + name for name in capabilities(container)]
    mounts = [{"destination": to, "type": kind, "source": source, "options": options}
              for to, kind, source, options in MOUNTS]
    for mount in container["volumeMounts"]:
        options = ["rbind", "rprivate", "ro" if mount.get("readOnly") else "rw"]
        mounts.append({"destination": mount["mountPath"], "type": "bind", "source": volume(pod, mount),
                       "options": options})
    namespaces = ["mount", "uts", "ipc", "network", "cgroup"] + ([] if pod.get("hostPID") else ["pid"])
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": container["securityContext"]["runAsUser"], "gid": 0}, "cwd": "/",
            "args": ENTRYPOINT + container["args"],
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "capabilities": {which: kept for which in ("bounding", "effective", "permitted")},
            "noNewPrivileges": not container["securityContext"]["allowPrivilegeEscalation"],
        },
        "root": {"path": "rootfs", "readonly": container["securityContext"]["readOnlyRootFilesystem"]},
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": name} for name in namespaces],
            "maskedPaths": MASKED, "readonlyPaths": READ_ONLY, "seccomp": seccomp(profile, kept),
        },
    }


def main():
    manifest, what, *rest = sys.argv[1:]
    documents = list(yaml.safe_load_all(read(manifest)))
    pod = of_kind(documents, "DaemonSet")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    if what == "check":
        check(pod, container, *rest)
    elif what == "config":
        print(of_kind(documents, "ConfigMap")["data"]["config.toml"], end="")
    elif what == "bundle":
        json.dump(bundle(pod, container, json.loads(read(rest[0]))), sys.stdout, indent=1)


main()
