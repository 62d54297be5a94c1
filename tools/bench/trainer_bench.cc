// Measures what a trainer adds to a step: the time from the engine's start() to finished(), without computing and
// without an exchange. The trainer (trainer_step.py) has its gradients ready, so that the time consists of two
// messages, two switches between the processes, and the Python package.
//
// Usage: trainer_bench PYTHON torch|numpy [ARRAYS ELEMENTS [STEPS]]. PYTHON is a Python with NumPy, and with PyTorch
// for "torch". By default: 50 arrays, which are as many as a GPT-2 of 4 layers has, of 800,000 elements in all, 2,000
// steps.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/layout.h"
#include "workerd/trainer/trainer_engine.h"

namespace disttrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

class Sink final : public workerd::EngineSink {
 public:
  void ready(std::uint64_t, std::uint64_t) override {}
  void finished(const Result<workerd::EngineOutput>& output) override {
    is_finished = true;
    if (output) return;
    std::fprintf(stderr, "trainer_bench: %s\n", output.error().message.c_str());
    std::exit(1);
  }
  bool is_finished = false;
};

Layout layout_of(const ModelSpec& spec) {
  Layout layout{spec, 1, {}, {}};
  std::uint64_t flat = 0;
  for (const VariableSpec& variable : spec.variables) {
    layout.variable_begins.push_back(flat);
    flat += element_count(variable);
  }
  return layout;
}

void run(const std::string& python, const std::vector<std::string>& arguments, std::uint64_t steps) {
  ::setenv("PYTHONPATH", DISTTRAIN_PYTHON_FOLDER, 1);
  asio::io_context loop;
  Arena arena(ArenaKind::kShared);
  workerd::TrainerOptions options;
  options.command.argv = {python, DISTTRAIN_TRAINER_STEP};
  options.command.argv.insert(options.command.argv.end(), arguments.begin(), arguments.end());
  options.command.folder = std::filesystem::current_path().string();
  options.batch_size = 6;
  options.start_timeout = options.answer_timeout = std::chrono::minutes(1);
  auto engine = workerd::TrainerEngine::make(
      options, workerd::TrainerWorld{.loop = loop,
                                     .arena = arena,
                                     .is_cancelled = [] { return false; },
                                     .on_line = [](const std::string& line) { std::puts(line.c_str()); },
                                     .on_checkpoint = [] {},
                                     .worker_count = [] { return 1U; }});
  if (!engine) {
    std::fprintf(stderr, "trainer_bench: %s\n", engine.error().message.c_str());
    std::exit(1);
  }
  const Layout layout = layout_of((*engine)->describe());
  const std::uint64_t bytes = element_count(layout.model) * sizeof(float);
  Memory parameters(arena, bytes, Paging::kTouched);
  Memory gradients(arena, bytes, Paging::kTouched);
  if (!(*engine)->open(layout, parameters.floats(), gradients.floats())) std::exit(1);
  std::vector<double> microseconds;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const std::vector<std::int64_t> records = {1, 2, 3, 4, 5, 6};
    const ColumnValues column{std::as_bytes(std::span(records)), {}};
    Sink sink;
    const Clock::time_point begin = Clock::now();
    (*engine)->start({workerd::Program::kStep, Batch{records.size(), std::span(&column, 1)}, {1, step, 0}}, sink);
    while (!sink.is_finished) loop.run_one();
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("%s, %s arrays, %s elements: median %.0f us a step, 90 %% of the steps at most %.0f us\n",
              arguments[0].c_str(), arguments[1].c_str(), arguments[2].c_str(), microseconds[steps / 2],
              microseconds[steps * 9 / 10]);
}

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  if (argc < 3 || argc == 4) {
    std::fprintf(stderr, "usage: trainer_bench PYTHON torch|numpy [ARRAYS ELEMENTS [STEPS]]\n");
    return 64;
  }
  const std::vector<std::string> arguments = {argv[2], argc > 4 ? argv[3] : "50", argc > 4 ? argv[4] : "800000"};
  disttrain::bench::run(argv[1], arguments, argc > 5 ? std::stoul(argv[5]) : 2000);
}
