// The CPU plugin that tools/setup installs for tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace disttrain::workerd::pjrt::test {

inline constexpr const char* kNoPlugin = "the PJRT plugin for tests isn't installed; run tools/setup";

inline std::optional<std::string> cpu_plugin() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (cache == nullptr && home == nullptr) return std::nullopt;
  const std::filesystem::path venv =
      (cache != nullptr ? std::filesystem::path(cache) : std::filesystem::path(home) / ".cache") /
      "disttrain/pjrt-plugin-0.0.1/lib";
  std::error_code error;
  for (const auto& python : std::filesystem::directory_iterator(venv, error)) {
    const std::filesystem::path plugin = python.path() / "site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so";
    if (std::filesystem::exists(plugin, error)) return plugin.string();
  }
  return std::nullopt;
}

}  // namespace disttrain::workerd::pjrt::test
