// Measures how long a step of a job's builtin model takes in the worker's engine, without data, messages and update.
//
// Usage: step_bench JOB.toml [STEPS [THREADS]]
//
// It computes steps with the job's batch size, on random records. It prints the minimum and the median of the time and,
// for one thread, of the thread's CPU time, because other programs on the machine hardly disturb CPU time.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "common/config/reader/reader.h"
#include "common/initialize.h"
#include "workerd/compute/torch_model.h"

namespace disttrain::bench {
namespace {

double thread_milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Layout reversed_layout(const ModelSpec& spec) {
  Layout layout{spec, 1, std::vector<std::uint64_t>(spec.variables.size()), {}};
  std::uint64_t flat = 0;
  for (std::size_t v = spec.variables.size(); v-- > 0;) {
    layout.variable_begins[v] = flat;
    flat += element_count(spec.variables[v]);
  }
  return layout;
}

// Random values that every model takes: floats are 0 or 1, and integers are below the column's limit.
std::vector<std::byte> random_column(const ColumnSpec& column, std::uint64_t examples, std::mt19937_64& random) {
  std::vector<std::byte> bytes(examples * element_count(column) * size_of(column.dtype));
  const auto fill = [&](auto example, std::uint64_t limit) {
    using T = decltype(example);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(T))
      *reinterpret_cast<T*>(bytes.data() + at) = static_cast<T>(random() % limit);
  };
  const std::uint64_t limit = column.limit > 0 ? column.limit : 2;
  if (column.dtype == DType::kFloat32) fill(0.0F, 2);
  if (column.dtype == DType::kUint8) fill(std::uint8_t{0}, limit);
  if (column.dtype == DType::kInt32) fill(std::int32_t{0}, limit);
  if (column.dtype == DType::kInt64) fill(std::int64_t{0}, limit);
  return bytes;
}

void print(const char* what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("  %-16s min %9.3f ms, median %9.3f ms\n", what, times.front(), times[times.size() / 2]);
}

int measure(const JobConfig& job, std::size_t steps, std::uint32_t threads) {
  const auto model = workerd::make_torch_model(job.model, threads);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message.c_str());
    return static_cast<int>(model.error().code);
  }
  const ModelSpec& spec = (*model)->describe();
  const Layout layout = reversed_layout(spec);
  std::vector<float> parameters(element_count(spec));
  std::vector<float> gradients(parameters.size());
  for (std::size_t v = 0; v < spec.variables.size(); ++v)
    initialize(spec.variables[v], 1, 0,
               std::span(parameters).subspan(layout.variable_begins[v], element_count(spec.variables[v])));
  if (!(*model)->open(layout, parameters, gradients)) std::abort();

  constexpr std::size_t kWarm = 3;
  std::mt19937_64 random(1);
  std::vector<double> walls;
  std::vector<double> processor;
  for (std::size_t step = 0; step < steps + kWarm; ++step) {
    std::vector<std::vector<std::byte>> arrays;
    std::vector<ColumnValues> columns;
    for (const ColumnSpec& column : spec.columns) arrays.push_back(random_column(column, job.train.batch_size, random));
    for (const auto& array : arrays) columns.push_back({array, {}});
    const double begin = thread_milliseconds();
    const auto wall = std::chrono::steady_clock::now();
    const auto result = (*model)->step({job.train.batch_size, columns}, {1, step, 0}, {});
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().message.c_str());
      return static_cast<int>(result.error().code);
    }
    if (step < kWarm) continue;
    processor.push_back(thread_milliseconds() - begin);
    walls.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - wall).count());
  }
  std::printf("%s, %zu parameters, batch %u, %u threads\n", job.model.builtin.c_str(), parameters.size(),
              job.train.batch_size, threads);
  print("time", walls);
  if (threads == 1) print("CPU time", processor);
  return 0;
}

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  using namespace disttrain;
  if (argc < 2) {
    std::fprintf(stderr, "usage: step_bench JOB.toml [STEPS [THREADS]]\n");
    return 64;
  }
  const auto job = config::read_job_file(argv[1], {});
  if (!job) {
    std::fprintf(stderr, "%s\n", job.error().message.c_str());
    return static_cast<int>(job.error().code);
  }
  const std::size_t steps = argc > 2 ? std::max<std::size_t>(1, std::strtoull(argv[2], nullptr, 10)) : 50;
  const auto threads = static_cast<std::uint32_t>(argc > 3 ? std::max(1, std::atoi(argv[3])) : 1);
  return bench::measure(job->config, steps, threads);
}
