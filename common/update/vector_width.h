// Which vector instructions this room's loops use: chosen at run time, so that one program is fast on new CPUs and runs
// on old ones. The choice doesn't change results: see "Bits" in ARCHITECTURE.md.
#pragma once

#include <cstdint>

namespace disttrain::update {

// No AVX-512: with AVX2, sgd is already almost as fast as a plain a += b over the same memory.
enum class VectorWidth : std::uint8_t { kBaseline, kAvx2 };

// The widest that this CPU has. Cheap: determined once.
VectorWidth best_vector_width();

// Runs body(arguments...) compiled for the given width, which the processor must have. `body` is a struct whose
// operator() is DISTTRAIN_INLINE_BODY: it is compiled into each of the functions below, and vectorised there.
// Not g++'s target_clones: its resolvers run before the sanitizers' run time is up, and tests couldn't ask for a width.
#define DISTTRAIN_INLINE_BODY __attribute__((always_inline)) inline

template <typename Body, typename... Arguments>
void run_baseline(const Body& body, Arguments... arguments) {
  body(arguments...);
}

#if defined(__x86_64__)
template <typename Body, typename... Arguments>
__attribute__((target("avx2"))) void run_avx2(const Body& body, Arguments... arguments) {
  body(arguments...);
}
#endif

template <typename Body, typename... Arguments>
void run(VectorWidth width, const Body& body, Arguments... arguments) {
#if defined(__x86_64__)
  if (width == VectorWidth::kAvx2) return run_avx2(body, arguments...);
#endif
  static_cast<void>(width);
  run_baseline(body, arguments...);
}

}  // namespace disttrain::update
