// Makes an Engine of a Computation. A short computation runs on the caller's thread, because two thread switches would
// take 60 to 100 us. A long one runs on a thread of its own, so that the caller's event loop runs meanwhile.
#pragma once

#include <functional>
#include <memory>

#include "engine/computation.h"
#include "engine/engine.h"

namespace disttrain::workerd {

// Runs a function on the event loop of the engine's caller, later. Any thread may call it.
using Post = std::function<void(std::function<void()>)>;

// Whether the first computation is expected to be short. The engine measures all later ones.
enum class FirstComputation { kShort, kLong };

// The engine must be destroyed on the loop's thread.
std::unique_ptr<Engine> make_compute_engine(std::unique_ptr<Computation> computation, Post post,
                                            FirstComputation first = FirstComputation::kShort);

}  // namespace disttrain::workerd
