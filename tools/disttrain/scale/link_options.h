// The options that describe the links of a cluster, and those of `bench scale` and `plan` that go with them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "common/result.h"
#include "common/time.h"
#include "scale/network.h"

namespace disttrain::cli {

// Parses "10G": bits per second, with K, M, G or T (powers of 1000). Returns bytes per second. None: the text isn't a
// bandwidth from 1M to 10T.
std::optional<double> parse_bandwidth(const std::string& text);
// Parses "50us". None: the text isn't a duration of at most `most`.
std::optional<Duration> parse_time(const std::string& text, Duration most);

inline constexpr Duration kMostLatency = std::chrono::seconds(1);
inline constexpr Duration kMostCompute = std::chrono::hours(1);

// Each adds an option whose text is checked at once.
CLI::Option* add_bandwidth(CLI::App& verb, std::string& text);
CLI::Option* add_latency(CLI::App& verb, std::string& text);
CLI::Option* add_compute(CLI::App& verb, std::string& text);

// The texts must have passed the checks above.
scale::LinkSpeed link_speed(const std::string& bandwidth, const std::string& latency);

}  // namespace disttrain::cli
