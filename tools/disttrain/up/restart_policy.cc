#include "tools/disttrain/up/restart_policy.h"

#include <algorithm>
#include <array>

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration kLongLife = 10s;
constexpr Duration kFirstPause = 100ms;
constexpr Duration kLongestPause = 5s;
constexpr std::size_t kMostRestarts = 10;
constexpr Duration kRestartWindow = 1min;
constexpr std::array kFinalCodes = {64, 65, 66, 77, 78, 126, 127};

std::string reason_to_stay_down(std::optional<int> exit_code) {
  if (exit_code == 0) return "it ended by itself";
  if (exit_code && std::find(kFinalCodes.begin(), kFinalCodes.end(), *exit_code) != kFinalCodes.end())
    return "a restart would fail in the same way";
  return "";
}

}  // namespace

RestartPolicy::Verdict RestartPolicy::on_end(Instant now, std::optional<int> exit_code, bool is_missed) {
  if (!allowed_) return {std::nullopt, "--no-restart"};
  if (std::string reason = reason_to_stay_down(exit_code); !reason.empty()) return {std::nullopt, std::move(reason)};
  while (!restarts_.empty() && now - restarts_.front() >= kRestartWindow) restarts_.pop_front();
  const bool is_loop = restarts_.size() >= kMostRestarts;
  if (is_loop && !(is_missed && exit_code))
    return {std::nullopt, "it was restarted " + std::to_string(kMostRestarts) + " times within a minute"};
  if (now - started_ >= kLongLife) short_lives_ = 0;
  Duration pause{};
  if (is_loop) pause = kLongestPause;
  for (std::uint32_t i = 0; i < short_lives_; ++i) pause = std::clamp(pause * 2, kFirstPause, kLongestPause);
  ++short_lives_;
  restarts_.push_back(now);
  return {pause, ""};
}

}  // namespace disttrain::cli
