#include "workerd/bench/step.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <chrono>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

#include "chiefd/core/placement.h"
#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"
#include "common/daemon/signals.h"
#include "common/daemon/threads.h"
#include "common/initialize.h"
#include "input/batch_buffer.h"
#include "workerd/bench/random_dataset.h"
#include "workerd/predict/single_computation.h"

namespace disttrain::workerd {

namespace {

// A round makes as many steps as fit into this time, but at least kLeastSteps.
constexpr Duration kRoundTime = std::chrono::milliseconds(200);
constexpr std::uint64_t kLeastSteps = 3;

// The results of a round.
struct Round {
  double ms = 0.0;      // of a step
  double cpu_ms = 0.0;  // of all threads of this process
  double examples_per_second = 0.0;
};

Duration process_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// "0.509", "50.9" or "196404".
std::string figure_text(double number) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(number < 10 ? 3 : number < 1000 ? 1 : 0) << number;
  return text.str();
}

// A job whose engine has parameters and records.
struct Subject {
  std::unique_ptr<PreparedJob> job;
  std::optional<Memory> parameters;
  std::optional<Memory> gradients;
  std::unique_ptr<input::Dataset> random;  // null: the job's own records
  const input::Dataset& records() const { return random ? *random : *job->training; }
};

Result<std::unique_ptr<PreparedJob>> prepare_random(const JobConfig& config, const EngineFactory& make_engine,
                                                    const EngineWorld& world) {
  if (config.model.builtin.empty())
    return fail(ErrorCode::kConfig, "--random: only a builtin model takes random records; leave the option out");
  auto prepared = std::make_unique<PreparedJob>(ArenaKind::kPrivate);
  prepared->config = config;
  Result<MadeEngine> made = make_engine(config, {}, prepared->arena, world);
  if (!made) return tl::unexpected(made.error());
  prepared->engine = std::move(made->engine);
  return prepared;
}

Result<std::unique_ptr<Subject>> make_subject(const StepBenchOptions& options, const EngineFactory& make_engine,
                                              const EngineWorld& world) {
  const auto job = config::read_job_file(options.job, options.sets);
  if (!job) return tl::unexpected(job.error());
  auto subject = std::make_unique<Subject>();
  auto prepared = options.is_random ? prepare_random(job->config, make_engine, world)
                                    : prepare_job(JobId(1), job->config, make_engine, world, [](ErrorCode) {});
  if (!prepared) return tl::unexpected(prepared.error());
  subject->job = std::move(*prepared);
  Engine& engine = *subject->job->engine;
  const ModelSpec& model = engine.describe();
  if (options.is_random) subject->random = std::make_unique<RandomDataset>(model.columns.size());
  const Result<Layout> layout = chiefd::place(model, chiefd::placement_of(job->config), 1);
  if (!layout) return tl::unexpected(layout.error());
  const std::uint64_t bytes = word_count(model) * sizeof(float);
  subject->parameters.emplace(subject->job->arena, bytes, Paging::kTouched);
  subject->gradients.emplace(subject->job->arena, bytes, Paging::kTouched);
  const std::span<float> parameters = subject->parameters->floats();
  for (std::size_t v = 0; v < model.variables.size(); ++v)
    initialize(model.variables[v], job->config.job.seed, 0,
               parameters.subspan(layout->variable_begins[v], word_count(model.variables[v])));
  if (Status ok = engine.open(*layout, parameters, subject->gradients->floats()); !ok)
    return tl::unexpected(ok.error());
  const Result<std::vector<float>> values = engine.initial_values();  // empty if the model brings none
  if (!values) return tl::unexpected(values.error());
  std::ranges::copy(*values, parameters.begin());
  return subject;
}

// Computes steps until `time` has passed, at least kLeastSteps of them. Only the computations count, not the reading of
// records.
class Steps {
 public:
  Steps(Subject& subject, asio::io_context& loop)
      : subject_(subject),
        batch_size_(std::min<std::uint64_t>(subject.job->config.train.batch_size,
                                            subject.random ? ~std::uint64_t{0} : subject.records().records())),
        buffer_(subject.records(), batch_size_, subject.job->engine->describe().columns),
        indices_(batch_size_),
        computation_(*subject.job->engine, loop) {}

  Result<Round> run(Duration time) {
    std::uint64_t steps = 0, examples = 0;
    Duration spent{}, cpu{};
    for (; steps < kLeastSteps || spent < time; ++steps) {
      for (std::uint64_t& index : indices_) index = random_() % subject_.records().records();
      if (Status filled = buffer_.fill(indices_); !filled) return tl::unexpected(filled.error());
      const Instant begin = daemon::now();
      const Duration cpu_begin = process_time();
      const Result<EngineOutput> output = computation_.run(Program::kStep, buffer_.batch());
      if (!output) return tl::unexpected(output.error());
      cpu += process_time() - cpu_begin;
      spent += daemon::now() - begin;
      examples += batch_size_;
    }
    const double count = static_cast<double>(steps);
    return Round{to_seconds(spent) / count * 1e3, to_seconds(cpu) / count * 1e3,
                 static_cast<double>(examples) / to_seconds(spent)};
  }

 private:
  Subject& subject_;
  const std::uint64_t batch_size_;
  input::BatchBuffer buffer_;
  std::vector<std::uint64_t> indices_;
  std::mt19937_64 random_{1};
  SingleComputation computation_;
};

// The smallest, the median and the largest of the rounds' results.
std::array<double, 3> spread_of(const std::vector<Round>& rounds, double Round::*figure) {
  std::vector<double> results;
  for (const Round& round : rounds) results.push_back(round.*figure);
  std::sort(results.begin(), results.end());
  const std::size_t half = results.size() / 2;
  const double median = results.size() % 2 == 1 ? results[half] : (results[half - 1] + results[half]) / 2;
  return {results.front(), median, results.back()};
}

void print(std::ostream& out, const Subject& subject, const StepBenchOptions& options,
           const std::vector<Round>& rounds) {
  const struct {
    const char* key;
    const char* name;
    double Round::*figure;
  } figures[] = {{"ms", "ms per step", &Round::ms},
                 {"cpu_ms", "CPU ms per step", &Round::cpu_ms},
                 {"examples_per_second", "examples/s", &Round::examples_per_second}};
  const std::uint64_t parameters = element_count(subject.job->engine->describe());
  const std::uint32_t batch_size = subject.job->config.train.batch_size;
  if (options.is_json)
    out << "{\"parameters\":" << parameters << ",\"batch_size\":" << batch_size << ",\"threads\":" << options.threads
        << ",\"rounds\":" << options.rounds;
  else
    out << parameters << " parameters, batches of " << batch_size << ", "
        << (options.threads == 1 ? "one core" : std::to_string(options.threads) + " compute threads") << "; median of "
        << options.rounds << (options.rounds == 1 ? " round" : " rounds") << " (min - max)\n";
  for (const auto& [key, name, figure] : figures) {
    const auto [min, median, max] = spread_of(rounds, figure);
    if (options.is_json)
      out << ",\"" << key << "\":{\"min\":" << min << ",\"median\":" << median << ",\"max\":" << max << '}';
    else
      out << std::left << std::setw(16) << name << ' ' << figure_text(median) << " (" << figure_text(min) << " - "
          << figure_text(max) << ")\n";
  }
  out << (options.is_json ? "}\n" : "");
}

}  // namespace

Status bench_step(const StepBenchOptions& options, const EngineFactory& make_engine) {
  // The threads that the engine starts inherit this.
  if (options.threads == 1)
    if (const int core = sched_getcpu(); core >= 0)
      if (Status pinned = daemon::pin_thread({static_cast<std::uint32_t>(core)}); !pinned) return pinned;
  asio::io_context loop(1);
  const EngineWorld world{
      .loop = loop,
      .threads = options.threads,
      .is_cancelled = [] { return false; },
      .on_line = [](const std::string& line) { std::cerr << "trainer: " << line << '\n'; },
      .on_checkpoint = [] {},
      .worker_count = [] { return 1u; },
  };
  const Result<std::unique_ptr<Subject>> subject = make_subject(options, make_engine, world);
  if (!subject) return tl::unexpected(subject.error());
  int stops = 0;
  const daemon::StopSignals signals(loop, [&stops](int) { ++stops; });
  Steps steps(**subject, loop);
  std::vector<Round> rounds;
  for (std::uint32_t round = 0; round <= options.rounds; ++round) {
    Result<Round> result = steps.run(kRoundTime);
    if (!result) return tl::unexpected(result.error());
    loop.restart();
    loop.poll();
    if (stops > 0) return fail(ErrorCode::kTemporary, "a signal ended the measurement");
    if (round > 0) rounds.push_back(*result);  // the first one warms up
  }
  std::ostringstream text;
  text << std::setprecision(9);
  print(text, **subject, options, rounds);
  std::cout << text.str();
  return {};
}

}  // namespace disttrain::workerd
