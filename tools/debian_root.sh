# Sourced, after setup.sh, by the scripts that try what was built in a Debian of its own: check_bundle, check_packages.

# nsa_debian_root FOLDER SUITE [packages]: a small Debian in FOLDER, by debootstrap, or a copy of DEBIAN_ROOTS/SUITE where that
# folder is. SUITE is bullseye (Debian 11) or bookworm (Debian 12).
# Its mount of /proc goes with the script, which must have called nsa_own_mounts.
nsa_debian_root() {
  local folder=$1 suite=$2
  shift 2
  if [ -n "${DEBIAN_ROOTS:-}" ] && [ -d "$DEBIAN_ROOTS/$suite" ]; then
    say "Copying $DEBIAN_ROOTS/$suite"
    cp -a "$DEBIAN_ROOTS/$suite" "$folder"
  else
    say "Making a $suite with debootstrap"
    debootstrap --variant=minbase "$suite" "$folder" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$folder.log" 2>&1 || { tail "$folder.log"; return 1; }
  fi
  mount -t proc proc "$folder/proc"
  [ $# -eq 0 ] || nsa_in_root "$folder" "apt-get update -qq && apt-get install -y -qq --no-install-recommends $*" >/dev/null
}

# nsa_own_mounts SCRIPT ARGUMENTS...: goes on as root in a mount namespace of its own, or says what is missing.
nsa_own_mounts() {
  [ -z "${NSA_OWN_MOUNTS:-}" ] || return 0
  [ "$(id -u)" -eq 0 ] || { say "Only root can enter another root folder."; exit 1; }
  command -v debootstrap >/dev/null || [ -n "${DEBIAN_ROOTS:-}" ] || { say "Install the package debootstrap, or name a folder of Debians in DEBIAN_ROOTS."; exit 1; }
  NSA_OWN_MOUNTS=1 exec unshare --mount "$@"
}

# nsa_in_root FOLDER COMMANDS: a shell's commands there, in a clean environment; any failure ends them.
nsa_in_root() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$1" /bin/sh -ec "$2"
}

# nsa_try_kernels FOLDER NSA: in that root the command line NSA finds its compiler, compiles a kernel that is right, and
# takes it from the database in another process.
nsa_try_kernels() {
  cat >"$1/tmp/window.json" <<'JSON'
{"query_heads": 4, "kv_heads": 2, "qk_dim": 64, "v_dim": 64, "window": 100, "dtype": "bf16"}
JSON
  nsa_in_root "$1" "
    umask 077
    cd \$(mktemp -d)
    $2 --version
    $2 doctor
    $2 generate --op window --config /tmp/window.json --seqlen-k 300 --output in.safetensors --seed 1
    run() { $2 run --op window --config /tmp/window.json --input in.safetensors --output out.safetensors --device cpu --cache \$PWD/kernels.db --check \"\$@\"; }
    run --miss default
    run --miss fail"
}
