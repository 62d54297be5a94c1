// Chooses the vector instructions for the loops of common/update when the program runs. So the same program is fast on
// new CPUs and still runs on old ones. The choice doesn't change any result; see "Bits" in ARCHITECTURE.md.
#pragma once

#include <cstdint>

namespace disttrain::update {

// There is no AVX-512, because with AVX2 sgd is already almost as fast as a plain a += b over the same memory.
enum class VectorWidth : std::uint8_t { kBaseline, kAvx2 };

// Returns the widest vectors that this CPU has. It is cheap, because the CPU is asked only once.
VectorWidth best_vector_width();

// Runs body(arguments...), compiled for the given width. The CPU must have that width. `body` is a struct whose
// operator() is declared with DISTTRAIN_INLINE_BODY; the compiler inlines and vectorises it in each of the functions
// below. g++'s target_clones isn't used for two reasons: its resolvers run before a sanitizer is ready, and tests
// couldn't choose a width.
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
