# Sourced by the scripts of this folder: installs what is missing and builds.
# Nothing here runs as root that need not: packages go through apt-get (with sudo when not root).

set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build="$repository/build"

packages=(
  cmake ninja-build ccache g++ xz-utils
  llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools clang-22 lld-22
  libsqlite3-dev libzstd-dev zlib1g-dev libsodium-dev nlohmann-json3-dev
  libcli11-dev libfmt-dev libgtest-dev libgmock-dev pkgconf
)
# What only checking needs: the sanitizers' runtimes, the formatter, the linter, what makes packages and
# shows the manual page, numpy for docs/examples/hello/hello.py, and the second shell that completes.
check_packages=(libclang-rt-22-dev clang-format-22 clang-tidy-22 dpkg-dev file man-db python3-numpy zsh)

say() { printf '== %s\n' "$*"; }

# nsa_install_packages [more packages...]
nsa_install_packages() {
  local wanted=("${packages[@]}" "$@") missing=()
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "This system has no apt-get: nothing is installed. The build needs what these Debian packages hold:"
    printf '   %s\n' "${wanted[*]}"
    return 0
  fi
  local package
  for package in "${wanted[@]}"; do
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

# nsa_build [preset [target]]: release, the default, goes into build/, the others into build-<preset>/.
nsa_build() {
  local preset=${1:-release} target=${2:-all} folder=$build
  [ "$preset" = release ] || folder=$build-$preset
  say "Building $target into ${folder##*/}/ with clang-22, $(nsa_jobs) job(s)"
  cmake -S "$repository" -B "$folder" --preset "$preset" -Wno-dev >"$folder.configure.log" 2>&1 || { cat "$folder.configure.log"; return 1; }
  rm -f "$folder.configure.log"
  cmake --build "$folder" --target "$target" -j "$(nsa_jobs)" -- --quiet
}
