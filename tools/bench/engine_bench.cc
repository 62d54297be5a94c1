// Measures how long one gradient of an mlp takes with the worker's engine, and with libtorch's autograd. Both run in
// turn, on one thread.
//
// Usage: engine_bench MNIST_FOLDER [STEPS [small | large]].
//
// It measures two models on MNIST: 784-100-10 with batch 100 (small), and 784-4096-4096-10 with batch 10 (large). It
// prints the minimum and the median of the thread's CPU time, because other programs on the machine hardly disturb CPU
// time.
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "tools/bench/autograd_twin.h"
#include "workerd/compute/torch_model.h"
#include "workerd/input/batch_buffer.h"
#include "workerd/input/dataset.h"

namespace disttrain::bench {
namespace {

double thread_microseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

long page_faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Allocates zeroed memory in huge pages, because a worker's arrays are in huge pages too.
std::span<float> huge_array(std::uint64_t elements) {
  constexpr std::size_t kHugePage = 2 * 1024 * 1024;
  const std::size_t bytes = (elements * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, bytes);
  if (memory == nullptr) std::abort();
  madvise(memory, bytes, MADV_HUGEPAGE);
  const std::span<float> result(static_cast<float*>(memory), elements);
  std::fill(result.begin(), result.end(), 0.0F);
  return result;
}

// Orders the variables from the last to the first, as the placement `balanced` does, because a backward pass computes
// gradients in this order.
Layout layout_of(const ModelSpec& spec) {
  Layout layout{spec, 1, std::vector<std::uint64_t>(spec.variables.size()), {}};
  std::uint64_t flat = 0;
  for (std::size_t v = spec.variables.size(); v-- > 0;) {
    layout.variable_begins[v] = flat;
    flat += element_count(spec.variables[v]);
  }
  return layout;
}

void print(const char* what, std::vector<double> times, long faults) {
  std::sort(times.begin(), times.end());
  std::printf("  %-24s min %9.1f us, median %9.1f us, %.1f page faults per step\n", what, times.front(),
              times[times.size() / 2], static_cast<double>(faults) / static_cast<double>(times.size()));
}

void measure(const input::Dataset& digits, const std::vector<std::uint32_t>& layers, std::size_t batch_size,
             std::size_t steps) {
  ModelSection model;
  model.builtin = "mlp";
  model.layers = layers;
  model.activation = Activation::kSigmoid;
  const std::unique_ptr<workerd::Computation> engine = workerd::make_torch_model(model, 1).value();
  const Layout layout = layout_of(engine->describe());
  const std::span<float> parameters = huge_array(element_count(layout.model));
  const std::span<float> gradients = huge_array(parameters.size());
  for (float& parameter : parameters) parameter = static_cast<float>(std::rand()) / RAND_MAX * 0.04F - 0.02F;
  if (!engine->open(layout, parameters, gradients)) std::abort();
  const std::span<float> twin_parameters = huge_array(parameters.size());
  std::copy(parameters.begin(), parameters.end(), twin_parameters.begin());
  const auto twin = autograd_twin(layers, twin_parameters);

  input::BatchBuffer records(batch_size, layout.model.columns);
  std::vector<std::uint64_t> indices(batch_size);
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> to_gradient;  // time until the engine reports the first gradient: the forward pass and the loss
  long our_faults = 0;
  long their_faults = 0;
  for (std::size_t step = 0; step < steps + 3; ++step) {
    for (std::uint64_t& index : indices) index = static_cast<std::uint64_t>(std::rand()) % digits.records();
    records.fill(digits, indices);
    const Batch batch = records.batch();
    const bool warm = step >= 3;
    long faults = page_faults();
    double begin = thread_microseconds();
    double first = 0.0;
    const auto ready = [&first](std::uint64_t, std::uint64_t) { first = first > 0.0 ? first : thread_microseconds(); };
    const auto result = engine->step(batch, {}, ready);
    if (!result) std::abort();
    if (warm) {
      ours.push_back(thread_microseconds() - begin);
      to_gradient.push_back(first - begin);
      our_faults += page_faults() - faults;
    }
    faults = page_faults();
    begin = thread_microseconds();
    twin(batch.columns[0].as<float>(), batch.columns[1].as<std::int64_t>());
    if (!warm) continue;
    theirs.push_back(thread_microseconds() - begin);
    their_faults += page_faults() - faults;
  }
  print("engine", ours, our_faults);
  print("  of it forward, loss", to_gradient, 0);
  print("autograd", theirs, their_faults);
}

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  using namespace disttrain;
  if (argc < 2) {
    std::fprintf(stderr, "usage: engine_bench MNIST_FOLDER [STEPS [small | large]]\n");
    return 64;
  }
  const std::size_t steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 500;
  input::Source source;
  source.path = argv[1];
  source.files = "train-images-idx3-ubyte*";
  source.scale = 1.0 / 255.0;
  const auto digits = input::load_dataset(source);
  if (!digits) {
    std::fprintf(stderr, "%s\n", digits.error().message.c_str());
    return static_cast<int>(digits.error().code);
  }
  const std::string_view which = argc > 3 ? argv[3] : "both";
  if (which != "large") {
    std::printf("784-100-10, batch 100\n");
    bench::measure(**digits, {784, 100, 10}, 100, steps);
  }
  if (which != "small") {
    std::printf("784-4096-4096-10, batch 10\n");
    bench::measure(**digits, {784, 4096, 4096, 10}, 10, std::max<std::size_t>(1, steps / 20));
  }
  return 0;
}
