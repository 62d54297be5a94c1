// Measures what a trainer adds to a step, without an exchange: the time from the engine's start() to finished(), and
// the part of it that the Python package takes in the trainer. The rest is two messages and two switches between
// processes. Between two steps the bench waits as long as a short exchange takes. Meanwhile a PyTorch trainer sets the
// next step's gradients to 0 and the package reads the next records, so neither is in the measured time.
//
// Usage: trainer_bench PYTHON torch|numpy|numpy_in_place|backward|backward_zeroing [ARRAYS ELEMENTS [STEPS]]
//        trainer_bench PYTHON gpt2 [STEPS]
//
// PYTHON is a Python with NumPy, and with PyTorch for "torch" and "backward", and with transformers for "gpt2". In
// "torch" and "numpy" the trainer (trainer_step.py) computes nothing, so that the time consists of two messages, two
// switches between the processes, and the Python package. By default: 52 arrays, as many as the GPT-2 of examples/gpt2
// has, of 834,304 elements in all, 2,000 steps. In "backward" and "gpt2" the trainer computes blocks of steps without
// disttrain, and the difference to the median of these is printed. It varies by some per cent of a step: take many
// steps (default 500).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/layout.h"
#include "engine/trainer/trainer_engine.h"

namespace disttrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Shorter than the exchange of 3.3 MB over TCP within one host.
constexpr auto kExchange = std::chrono::milliseconds(1);

class Sink final : public workerd::EngineSink {
 public:
  void ready(std::uint64_t, std::uint64_t) override {}
  void finished(const Result<workerd::EngineOutput>& output) override {
    is_finished = true;
    if (output && !output->metrics.empty()) metric = output->metrics[0] / output->metrics[1];
    if (output) return;
    std::fprintf(stderr, "trainer_bench: %s\n", output.error().message.c_str());
    std::exit(1);
  }
  bool is_finished = false;
  double metric = 0.0;  // plain_us or sdk_us, see trainer_step.py
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

void print(const std::string& what, std::vector<double>& microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("%s: median %.0f us, from %.0f us (10 %% of the steps are below) to %.0f us (90 %%)\n", what.c_str(),
              microseconds[microseconds.size() / 2], microseconds[microseconds.size() / 10],
              microseconds[microseconds.size() * 9 / 10]);
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
  auto gradients = std::make_unique<Memory>(arena, bytes, Paging::kTouched);
  auto spare = std::make_unique<Memory>(arena, bytes, Paging::kTouched);
  const bool is_compared = (*engine)->describe().metrics.at(0).name == "plain_us";  // with steps without disttrain
  const bool alternates = (*engine)->clears_gradients_ahead();
  std::vector<double> microseconds;
  std::vector<double> in_the_package;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const std::vector<std::int64_t> records = {1, 2, 3, 4, 5, 6};
    const ColumnValues column{std::as_bytes(std::span(records)), {}};
    Sink sink;
    if (alternates) gradients.swap(spare);
    const Clock::time_point begin = Clock::now();
    if (!(*engine)->open(layout, parameters.floats(), gradients->floats())) std::exit(1);
    (*engine)->start({.program = workerd::Program::kStep,
                      .batch = Batch{records.size(), std::span(&column, 1)},
                      .seed = {1, step, 0},
                      .next = Batch{records.size(), std::span(&column, 1)},
                      .spare_gradients = alternates ? spare->floats() : std::span<float>()},
                     sink);
    while (!sink.is_finished) loop.run_one();
    const double taken = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    // A thread that exchanges tensors doesn't sleep either.
    for (const auto until = Clock::now() + kExchange; Clock::now() < until;) {
    }
    if (!is_compared || sink.metric > 0.0) microseconds.push_back(taken - (is_compared ? sink.metric : 0.0));
    if (!is_compared && step > 1) in_the_package.push_back(sink.metric);
  }
  std::string what;
  for (const std::string& argument : arguments) what += argument + " ";
  print(what + ": disttrain adds to a step", microseconds);
  if (!is_compared) print(what + ": the package takes of it", in_the_package);
}

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  const bool is_gpt2 = !arguments.empty() && arguments[0] == "gpt2";
  std::uint64_t steps = is_gpt2 ? 500 : 2000;
  if (arguments.size() == (is_gpt2 ? 2 : 4)) {
    steps = std::stoul(arguments.back());
    arguments.pop_back();
  }
  if (arguments.size() == 1 && !is_gpt2) arguments.insert(arguments.end(), {"52", "834304"});
  if (arguments.size() != (is_gpt2 ? 1 : 3) || steps < 10) {
    std::fprintf(
        stderr,
        "usage: trainer_bench PYTHON torch|numpy|numpy_in_place|backward|backward_zeroing [ARRAYS ELEMENTS [STEPS]]\n"
        "       trainer_bench PYTHON gpt2 [STEPS]\n");
    return 64;
  }
  disttrain::bench::run(argv[1], arguments, steps);
}
