# shellcheck shell=bash
# Functions that tools/setup, tools/test, tools/quickstart, tools/package and tools/sanitized share. Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# say WORD...: prints a line that says what is being done.
say() { printf '== %s\n' "$*"; }

# die MESSAGE [CODE]: ends the script. The message says what was being done, what was found, and what to do.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit "${2:-1}"
}

cores() { nproc 2>/dev/null || echo 2; }

# configure_and_build PRESET [TARGET...]: builds the targets, or all. Shows the compiler's messages if the build fails.
configure_and_build() {
  local preset=$1
  shift
  local log="$root/build/$preset/configure.log"
  mkdir -p "$root/build/$preset" || die "can't create build/$preset: is the disk full, or the folder another user's?"
  say "configuring preset $preset"
  if ! cmake -S "$root" --preset "$preset" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    die "cmake can't configure preset $preset (above; whole log: $log). If something is missing, run tools/setup."
  fi
  say "building (the first time takes some minutes)"
  if ! cmake --build "$root/build/$preset" --parallel "$(cores)" ${1:+--target "$@"}; then
    die "the build failed (the compiler's messages are above). If the disk is full, df -h \"$root\" shows it."
  fi
}
