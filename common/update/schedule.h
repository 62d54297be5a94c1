// The factor by which the learning rate changes with the steps. It is a double, so that a value is rounded to float32
// only once, in the update rule.
#pragma once

#include <cstdint>

#include "common/config/job_config.h"

namespace disttrain::update {

// Returns the factor on the learning rate for the update that follows `t` updates; t = 0 is the first update.
//
// During the warm-up (t < w, where w = warmup_steps) the factor is (t + 1) / w. So it isn't 0 at the first update, and
// it is 1 at the last update of the warm-up (Goyal et al. 2017, section 2.2). Afterwards the factor is as
// follows, with s = t - w, e = end_factor and d = min(s, decay_steps) / decay_steps:
//   constant     1
//   step         factor ^ floor(s / every_steps)
//   exponential  factor ^ (s / every_steps)
//   polynomial   e + (1 - e) * (1 - d) ^ power
//   cosine       e + (1 - e) * (1 + cos(pi d)) / 2          Loshchilov & Hutter 2017 (SGDR), eq. 5, one period
//
// every_steps, decay_steps and factor must be above 0 where a formula uses them.
double schedule_factor(const ScheduleConfig& schedule, std::uint64_t t);

// Returns a shard's learning rate for its next update, after it has applied `t` updates. It is the optimizer's learning
// rate times the schedule's factor. With scale_learning_rate = "linear" it is also multiplied by the number of workers
// in the roster (Goyal et al. 2017, section 2.1).
double learning_rate(const TrainSection& train, std::uint64_t t, std::uint64_t workers);

// Returns base^exponent by repeated squaring, so that the bits don't depend on the system's libm.
double integer_power(double base, std::uint64_t exponent);

}  // namespace disttrain::update
