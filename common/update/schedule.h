// How the learning rate changes with the steps: a factor in double, so that only the rule rounds it to float32.
#pragma once

#include <cstdint>

#include "common/config/job_config.h"

namespace disttrain::update {

// The factor on the learning rate of the update after `t` updates (t = 0: the first one).
//
//   warm-up (w = warmup_steps, t < w):  (t + 1) / w: rises from 0 and is 1 at its last step, never 0 at its first
//   then, with s = t - w, d = min(s, decay_steps) / decay_steps, e = end_factor:
//   constant     1
//   step         factor ^ floor(s / every_steps)
//   exponential  factor ^ (s / every_steps)
//   polynomial   e + (1 - e) * (1 - d) ^ power
//   cosine       e + (1 - e) * (1 + cos(pi d)) / 2          Loshchilov & Hutter 2017 (SGDR), eq. 5, one period
//
// Warm-up: Goyal et al. 2017, section 2.2. every_steps, decay_steps and factor must be > 0 where they are used.
double schedule_factor(const ScheduleConfig& schedule, std::uint64_t t);

// The learning rate of the update after `t` updates of this shard: the optimizer's, times the schedule's factor, times
// the number of workers in the roster with scale_learning_rate = "linear" (Goyal et al. 2017, section 2.1).
double learning_rate(const TrainSection& train, std::uint64_t t, std::uint64_t workers);

// base^exponent by repeated squaring: the same bits with every libm.
double integer_power(double base, std::uint64_t exponent);

}  // namespace disttrain::update
