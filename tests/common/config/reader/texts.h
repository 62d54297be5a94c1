// Texts of small configuration files, and their errors.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "common/config/reader/reader.h"

namespace disttrain::config {

inline constexpr char kCluster[] = R"(
[[ps]]
address = "127.0.0.1:7110"
[[worker]]
address = "127.0.0.1:7120"
)";

inline constexpr char kJob[] = R"(
[job]
name = "test"
[model]
builtin = "mlp"
layers = [4, 2]
[data]
path = "/data"
files = "train*"
[train]
batch_size = 10
steps = 100
)";

inline Error cluster_error(const std::string& text) {
  auto cluster = parse_cluster(text, "cluster.toml");
  EXPECT_FALSE(cluster.has_value()) << text;
  return cluster ? Error{} : cluster.error();
}

inline Error job_error(const std::string& text) {
  auto job = read_job(text);
  EXPECT_FALSE(job.has_value()) << text;
  return job ? Error{} : job.error();
}

// The text of kJob with more lines at its end. kJob ends with [train], so the lines belong to [train].
inline std::string job_with(const std::string& lines) {
  return kJob + lines + "\n";
}

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

struct Mistake {
  const char* name;
  std::string text;
  std::string message;
};

}  // namespace disttrain::config
