// Measures how fast a worker makes batches from a job's data files, without a model: the time for whole epochs, from
// the first request for a batch to the last batch.
//
// Usage: input_bench JOB.toml [EPOCHS [SECTION.KEY=VALUE...]]
//
// It prints one JSON object with the seconds that opening the data set took (with its index, vocabularies and so on),
// those of the epochs, the records per second, and the seconds of each stage, summed over the input threads. The
// batches have the types that the data set has.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/config/reader/reader.h"
#include "common/memory_plan.h"
#include "input/data_figures.h"
#include "input/dataset.h"
#include "input/numbered_dataset.h"
#include "input/parquet/parquet_functions.h"
#include "input/prefetcher.h"

namespace disttrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void exit_with(const Error& error) {
  std::fprintf(stderr, "input_bench: %s\n", error.message.c_str());
  std::exit(static_cast<int>(error.code));
}

template <typename T>
T value_or_exit(Result<T> result) {
  if (!result) exit_with(result.error());
  return std::move(*result);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Waits for the next batch, as a step would.
std::unique_ptr<input::ReadyBatch> next_batch(input::Prefetcher& prefetcher) {
  for (;;) {
    if (std::unique_ptr<input::ReadyBatch> batch = prefetcher.try_pop()) return batch;
    std::mutex mutex;
    std::condition_variable ready;
    bool is_ready = false;
    const bool waits = prefetcher.notify_when_ready([&] {
      const std::lock_guard lock(mutex);
      is_ready = true;
      ready.notify_one();
    });
    std::unique_lock lock(mutex);
    if (waits) ready.wait(lock, [&is_ready] { return is_ready; });
  }
}

void run(const JobConfig& job, std::uint32_t epochs) {
  const Clock::time_point begin = Clock::now();
  input::Source source = input::training_source(job.data);
  source.parquet = &input::parquet_functions();
  const std::unique_ptr<input::Dataset> dataset = value_or_exit(input::load_dataset(source));
  const double open_seconds = seconds_since(begin);

  const std::vector<ColumnSpec> columns = input::columns_of(*dataset, job.data.scale);
  std::uint64_t record_bytes = 0;
  for (const ColumnSpec& column : columns) record_bytes += element_count(column) * size_of(column.dtype);
  const std::uint64_t batch = job.train.batch_size;
  const std::uint32_t ahead = batches_ahead(job.data, batch * record_bytes);
  const bool is_streamed = dataset->figures() != nullptr;
  const std::uint32_t threads = job.data.threads != 0 ? job.data.threads
                                : is_streamed         ? std::thread::hardware_concurrency()
                                                      : 1;
  const Clock::time_point start = Clock::now();
  input::Prefetcher prefetcher(
      *dataset,
      {.records = dataset->records(),
       .shuffle = job.data.shuffle,
       .buffer = job.data.shuffle_buffer,
       .window = job.data.shuffle_window,
       .seed = job.job.seed,
       .blocks = dataset->blocks()},
      {.batch_size = batch, .prefetch = ahead, .threads = threads, .seed = job.job.seed, .columns = columns});
  const std::uint64_t batches = (dataset->records() + batch - 1) / batch * epochs;
  const auto request = [&](std::uint64_t number) {
    const std::uint64_t per_epoch = batches / epochs;
    workerd::BatchOrder order;
    order.ticket = workerd::BatchTicket(number + 1);
    order.epoch = static_cast<std::uint32_t>(number / per_epoch);
    const std::uint64_t first = number % per_epoch * batch;
    order.positions.push_back({first, std::min(first + batch, dataset->records())});
    if (Status ok = prefetcher.request(std::move(order)); !ok) exit_with(ok.error());
  };
  std::uint64_t requested = 0;
  std::uint64_t examples = 0;
  double first_batch = 0.0;
  for (std::uint64_t taken = 0; taken < batches; ++taken) {
    while (requested < batches && requested < taken + ahead) request(requested++);
    std::unique_ptr<input::ReadyBatch> ready = next_batch(prefetcher);
    if (!ready->made) exit_with(ready->made.error());
    if (taken == 0) first_batch = seconds_since(start);
    examples += ready->buffer.examples();
    prefetcher.recycle(std::move(ready));
  }
  const double seconds = seconds_since(start);
  std::printf(
      "{\"open_seconds\": %.4f, \"first_batch_seconds\": %.4f, \"records\": %llu, \"seconds\": %.4f, "
      "\"records_per_second\": %.1f, \"threads\": %u, \"streamed\": %s",
      open_seconds, first_batch, static_cast<unsigned long long>(dataset->records()), seconds,
      static_cast<double>(examples) / seconds, threads, is_streamed ? "true" : "false");
  if (const input::DataFigures* figures = dataset->figures())
    std::printf(", \"read\": %.3f, \"decode\": %.3f, \"transform\": %.3f, \"batch\": %.3f",
                static_cast<double>(figures->read_ns) * 1e-9, static_cast<double>(figures->decode_ns) * 1e-9,
                static_cast<double>(figures->transform_ns) * 1e-9, static_cast<double>(figures->batch_ns) * 1e-9);
  std::printf("}\n");
}

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: input_bench JOB.toml [EPOCHS [SECTION.KEY=VALUE...]]\n");
    return 64;
  }
  const std::vector<std::string> sets(argv + std::min(argc, 3), argv + argc);
  const auto job = disttrain::bench::value_or_exit(disttrain::config::read_job_file(argv[1], sets)).config;
  disttrain::bench::run(job, argc > 2 ? static_cast<std::uint32_t>(std::max(1, std::atoi(argv[2]))) : 1);
}
