# shellcheck shell=bash
# What tools/setup, tools/test and tools/quickstart share. Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# One line of what is being done.
say() { printf '== %s\n' "$*"; }

# The end, with a sentence that helps: what was being done, what was found, what to do.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit "${2:-1}"
}

cores() { nproc 2>/dev/null || echo 2; }

# configure_and_build PRESET [TARGET...]: only what isn't built yet; the compiler's words are shown if it fails.
configure_and_build() {
  local preset=$1
  shift
  local log="$root/build/$preset/configure.log"
  mkdir -p "$root/build/$preset" || die "can't create build/$preset: is the disk full, or the folder another user's?"
  say "configuring preset $preset"
  if ! cmake -S "$root" --preset "$preset" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    die "cmake could not configure preset $preset (above; whole log: $log). If something is missing, run tools/setup."
  fi
  say "building (the first time takes some minutes)"
  if ! cmake --build "$root/build/$preset" --parallel "$(cores)" ${1:+--target "$@"}; then
    die "the build failed: the compiler's words are above. No space left on the disk? See: df -h \"$root\""
  fi
}
