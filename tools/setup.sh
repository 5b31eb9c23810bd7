# Sourced by tools/quickstart, tools/test and tools/bundle: installs what is missing and builds into build/.
# Nothing here runs as root that need not: packages go through apt-get (with sudo when not root).

set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build="$repository/build"

packages=(
  cmake ninja-build ccache g++ xz-utils
  llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools clang-22 lld-22
  libsqlite3-dev libzstd-dev zlib1g-dev libsodium-dev libxxhash-dev nlohmann-json3-dev
  libcli11-dev libfmt-dev libgtest-dev libgmock-dev pkgconf
)

say() { printf '== %s\n' "$*"; }

nsa_install_packages() {
  local missing=()
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "This system has no apt-get: nothing is installed. The build needs what these Debian packages hold:"
    printf '   %s\n' "${packages[*]}"
    return 0
  fi
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "Missing packages, and neither root nor sudo: install ${missing[*]}"; return 1; }
    as_root=(sudo)
  fi
  say "Installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  if ! apt-cache show llvm-22-dev >/dev/null 2>&1; then
    say "No llvm-22-dev in the package lists. Debian 12 has it in its security suite (bookworm-security), Ubuntu in"
    say "the LLVM project's own archive: enable one of them and run this again."
    return 1
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Compiler jobs: one per core, but at least 2 GiB of memory each (an MLIR source file takes up to that).
nsa_jobs() {
  local by_memory cores
  by_memory=$(awk '/MemAvailable/ { print int($2 / 2097152) }' /proc/meminfo)
  cores=$(nproc)
  [ "$by_memory" -lt 1 ] && by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}

nsa_build() {
  say "Building into build/ with clang-22, $(nsa_jobs) job(s)"
  cmake -S "$repository" -B "$build" --preset release -Wno-dev >"$build.configure.log" 2>&1 || { cat "$build.configure.log"; return 1; }
  rm -f "$build.configure.log"
  cmake --build "$build" -j "$(nsa_jobs)" -- --quiet
}
