# Debian packages without installing them: sourced by "kernel", "qemu",
# "promtool" and "unpacked", and by the package's tests, after common.sh.
#
# A private apt in a directory of the caller's: the machine's own lists and
# sources stay as they are, and nobody has to be root. Everything is verified
# by Debian's key; mirrors and proxies are those of the machine's own apt.
# shellcheck shell=bash disable=SC2154

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# What this machine is: debian-bookworm, say.
release=$(. /etc/os-release && echo "$ID-${VERSION_CODENAME-}")

# open_suite SUITE DIR [deb-src]: fetch the package list of SUITE, or that of its
# sources, from the first mirror that carries it under Debian's key (others are
# third parties' archives). DIR must be empty; apt_cache, take_packages and
# take_source work on that suite from then on.
open_suite() {
	local mirror type=${3:-deb}
	suite=$1 private=$2
	need apt-get apt-cache dpkg-deb
	[[ -r $keyring ]] || die "$keyring is missing: run tests/vm/setup as root"
	mkdir -p "$private"/{lists/partial,cache/archives/partial,debs}
	touch "$private/status" "$private/sources.list"
	apt=(-o "Dir::State::lists=$private/lists" -o "Dir::State::status=$private/status"
		-o "Dir::Cache=$private/cache" -o "Dir::Etc::sourcelist=$private/sources.list"
		-o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferences=/dev/null
		-o Dir::Etc::preferencesparts=/dev/null -o APT::Architecture=amd64 -o APT::Architectures=amd64
		-o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3)
	while read -r mirror; do
		echo "$type [signed-by=$keyring] $mirror $suite main" >"$private/sources.list"
		if apt-get "${apt[@]}" -o APT::Update::Error-Mode=any update >"$private/log" 2>&1; then
			say "$suite from $mirror"
			return
		fi
	done < <(mirrors)
	die "no archive of apt's configuration offers $suite: $(tail -n 1 "$private/log" 2>/dev/null)"
}

# mirrors: the archives of this machine's own apt configuration. apt reads it
# for us, so every format and include that apt knows works here too.
mirrors() {
	apt-get "${apt[@]}" -o Dir::Etc::sourcelist=/etc/apt/sources.list \
		-o Dir::Etc::sourceparts=/etc/apt/sources.list.d update --print-uris |
		sed -n "s|^'\(.*\)/dists/.*/InRelease' .*|\1|p" | awk '!seen[$0]++'
}

apt_cache() { apt-cache "${apt[@]}" "$@"; }

# take_packages ROOT PACKAGE...: download them and unpack them below ROOT
take_packages() {
	local root=$1 deb
	shift
	say "taking $*"
	(cd "$private/debs" && apt-get "${apt[@]}" --quiet download "$@" >&2) || die "download of $* failed"
	for deb in "$private"/debs/*.deb; do
		dpkg-deb --extract "$deb" "$root"
	done
}

# take_source DIR PACKAGE: download its source, with Debian's patches, into DIR
take_source() {
	say "taking the source of $2"
	(cd "$private/debs" && apt-get "${apt[@]}" --quiet --download-only source "$2" >&2) || die "download of $2 failed"
	dpkg-source --extract "$private"/debs/*.dsc "$1" >&2
}

# keep DIR SUITE PACKAGE...: these packages of SUITE, unpacked in DIR; from the
# second time on, without any network. The caller's function finish ROOT may add
# to them, before ROOT becomes DIR.
keep() {
	local dir=$1 release=$2 work
	shift 2
	[[ ! -d $dir ]] || return 0
	mkdir -p "${dir%/*}"
	exec 9>"$dir.lock"    # one at a time; who waited finds the work done
	flock 9
	[[ ! -d $dir ]] || return 0
	work=$(mktemp -d "$dir.XXXXXX")
	# shellcheck disable=SC2064
	trap "rm -rf '$work'" EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	open_suite "$release" "$work/apt"
	take_packages "$work/root" "$@"
	finish "$work/root"
	mv -T "$work/root" "$dir"
}

# depends_of DEB: what it depends on, with a comma between, without versions
depends_of() { dpkg-deb --field "$1" Depends | sed 's/ ([^)]*)//g; s/, */,/g'; }

# debian_tree DIR VARIANT PACKAGES: a Debian tree of this machine's release, with these besides; takes root
debian_tree() {
	local sources
	need mmdebstrap
	[[ $release == debian-* ]] || die "this machine is $release: the package is for Debian"
	(( EUID == 0 )) || die "a Debian tree takes root"
	apt=()
	mapfile -t sources < <(mirrors | sed "s|.*|deb [signed-by=$keyring] & ${release#debian-} main|" | head -n 1)
	(( ${#sources[@]} )) || die "apt is configured for no archive"
	mmdebstrap --quiet --mode=root --variant="$2" --include="$3" "${release#debian-}" "$1" "${sources[@]}" ||
		die "there is no Debian tree"
}
