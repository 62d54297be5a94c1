// Measures how long a step of a job's builtin model takes in the worker's engine, without messages and update.
//
// Usage: step_bench [--random] JOB.toml [STEPS [THREADS]]
//
// It computes steps with the job's batch size on random records of the job's data set. With --random it needs no data:
// the values are random, too. For a model with kernels of its own (linear, mlp, cnn), it computes each step also with
// libtorch's autograd, in turn. It prints the minimum and the median of the time and, for one thread, of the thread's
// CPU time, because other programs on the machine hardly disturb CPU time.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "common/builtin/builtin.h"
#include "common/config/reader/reader.h"
#include "common/initialize.h"
#include "common/os/arena.h"
#include "engine/autograd/autograd_model.h"
#include "engine/torch_model.h"
#include "input/batch_buffer.h"
#include "input/dataset.h"
#include "input/fits.h"
#include "workerd/bench/random_dataset.h"

namespace disttrain::bench {
namespace {

constexpr std::size_t kWarm = 3;

[[noreturn]] void exit_with(const Error& error) {
  std::fprintf(stderr, "step_bench: %s\n", error.message.c_str());
  std::exit(static_cast<int>(error.code));
}

template <typename T>
T value_or_exit(Result<T> result) {
  if (!result) exit_with(result.error());
  return std::move(*result);
}

double thread_milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

long page_faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Orders the variables from the last to the first, as the placement `balanced` does, because a backward pass computes
// gradients in this order.
Layout reversed_layout(const ModelSpec& spec) {
  Layout layout{spec, 1, std::vector<std::uint64_t>(spec.variables.size()), {}};
  std::uint64_t flat = 0;
  for (std::size_t v = spec.variables.size(); v-- > 0;) {
    layout.variable_begins[v] = flat;
    flat += element_count(spec.variables[v]);
  }
  return layout;
}

// A model with arrays of its own, and the times of its steps.
class Contestant {
 public:
  Contestant(const char* name, std::unique_ptr<workerd::Computation> model)
      : name_(name),
        model_(std::move(model)),
        layout_(reversed_layout(model_->describe())),
        parameters_(arena_, element_count(layout_.model) * sizeof(float), Paging::kTouched),
        gradients_(arena_, element_count(layout_.model) * sizeof(float), Paging::kTouched) {
    for (std::size_t v = 0; v < layout_.model.variables.size(); ++v) {
      const VariableSpec& variable = layout_.model.variables[v];
      initialize(variable, 1, 0, parameters_.floats().subspan(layout_.variable_begins[v], element_count(variable)));
    }
    if (!model_->open(layout_, parameters_.floats(), gradients_.floats())) std::abort();
  }

  void step(const Batch& batch, std::uint64_t number) {
    const long faults = page_faults();
    const double begin = thread_milliseconds();
    const auto wall = std::chrono::steady_clock::now();
    value_or_exit(model_->step(batch, {1, number, 0}, {}));
    if (number < kWarm) return;
    processor_.push_back(thread_milliseconds() - begin);
    walls_.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - wall).count());
    faults_ += page_faults() - faults;
  }

  void print(std::uint32_t threads) {
    std::printf("%s\n", name_);
    print("time", walls_);
    if (threads == 1) print("CPU time", processor_);
    std::printf("  %.1f page faults per step\n", static_cast<double>(faults_) / static_cast<double>(walls_.size()));
  }

 private:
  static void print(const char* what, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    std::printf("  %-9s min %9.3f ms, median %9.3f ms\n", what, times.front(), times[times.size() / 2]);
  }

  const char* const name_;
  const std::unique_ptr<workerd::Computation> model_;
  const Layout layout_;
  Arena arena_{ArenaKind::kPrivate};  // in huge pages, as a worker's arrays are
  Memory parameters_;
  Memory gradients_;
  std::vector<double> walls_;
  std::vector<double> processor_;
  long faults_ = 0;
};

void measure(const JobConfig& job, bool is_random, std::size_t steps, std::uint32_t threads) {
  const ModelSpec spec = value_or_exit(builtin_model(job.model));
  std::unique_ptr<input::Dataset> dataset = std::make_unique<workerd::RandomDataset>(spec.columns.size());
  if (!is_random) {
    const input::Source source = input::training_source(job.data);
    dataset = value_or_exit(input::load_dataset(source));
    if (const Status fit = input::fits(*dataset, spec, job.model, source); !fit) exit_with(fit.error());
  }
  std::vector<std::unique_ptr<Contestant>> contestants;
  contestants.push_back(std::make_unique<Contestant>("the worker's engine",
                                                     value_or_exit(workerd::make_torch_model(job.model, threads))));
  const std::string& name = job.model.builtin;
  if (name == "linear" || name == "mlp" || name == "cnn")
    contestants.push_back(std::make_unique<Contestant>("autograd", workerd::make_autograd_model(job.model, spec)));

  input::BatchBuffer records(*dataset, job.train.batch_size, spec.columns);
  std::vector<std::uint64_t> indices(job.train.batch_size);
  std::mt19937_64 random(1);
  for (std::size_t step = 0; step < steps + kWarm; ++step) {
    for (std::uint64_t& index : indices) index = random() % dataset->records();
    if (const Status filled = records.fill(indices); !filled) exit_with(filled.error());
    for (const auto& contestant : contestants) contestant->step(records.batch(), step);
  }
  std::printf("%s, %llu parameters, batch %u, %u threads\n", name.c_str(),
              static_cast<unsigned long long>(element_count(spec)), job.train.batch_size, threads);
  for (const auto& contestant : contestants) contestant->print(threads);
}

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  using namespace disttrain;
  const bool is_random = argc > 1 && std::string_view(argv[1]) == "--random";
  char** const words = argv + (is_random ? 1 : 0);
  const int count = argc - (is_random ? 1 : 0);
  if (count < 2) {
    std::fprintf(stderr, "usage: step_bench [--random] JOB.toml [STEPS [THREADS]]\n");
    return 64;
  }
  const auto job = bench::value_or_exit(config::read_job_file(words[1], {}));
  const std::size_t steps = count > 2 ? std::max<std::size_t>(1, std::strtoull(words[2], nullptr, 10)) : 50;
  const auto threads = static_cast<std::uint32_t>(count > 3 ? std::max(1, std::atoi(words[3])) : 1);
  bench::measure(job.config, is_random, steps, threads);
}
