// Trains a job in one process, without a network and without shards, but with the same batches, sums and updates as a
// synchronous cluster. Prints a hash of the final parameters. A cluster must get the same parameters, bit for bit.
//
//   one_process JOB.toml WORKERS
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "chiefd/core/placement.h"
#include "common/config/reader/reader.h"
#include "common/initialize.h"
#include "common/os/arena.h"
#include "common/update/schedule.h"
#include "common/update/update_rule.h"
#include "engine/torch_model.h"
#include "input/batch_buffer.h"
#include "input/dataset.h"
#include "input/order.h"
#include "workerd/parameters_hash.h"

namespace disttrain {
namespace {

template <typename T>
T value_or_exit(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "one_process: %s\n", result.error().message.c_str());
  std::exit(static_cast<int>(result.error().code));
}

class OneProcess {
 public:
  OneProcess(const JobConfig& job, std::uint32_t workers)
      : job_(job),
        workers_(workers),
        dataset_(value_or_exit(input::load_dataset(input::training_source(job.data)))),
        model_(value_or_exit(workerd::make_torch_model(job.model, 1))),
        layout_(value_or_exit(chiefd::place(model_->describe(), Placement::kBalanced, 1))),
        elements_(element_count(layout_.model)),
        parameters_(arena_, elements_ * sizeof(float), Paging::kTouched),
        gradients_(arena_, elements_ * sizeof(float), Paging::kTouched),
        order_({.records = dataset_->records(),
                .shuffle = job.data.shuffle,
                .buffer = job.data.shuffle_buffer,
                .seed = job.job.seed}),
        batch_(*dataset_, job.train.batch_size, layout_.model.columns),
        rule_(job.train),
        slots_(rule_.slots(), std::vector<float>(elements_)),
        staged_(workers, std::vector<float>(elements_)) {
    for (std::size_t v = 0; v < layout_.model.variables.size(); ++v) {
      const VariableSpec& variable = layout_.model.variables[v];
      initialize(variable, job.job.seed, 0,
                 parameters_.floats().subspan(layout_.variable_begins[v], element_count(variable)));
    }
    if (!model_->open(layout_, parameters_.floats(), gradients_.floats())) std::exit(70);
  }

  void train() {
    for (std::uint32_t epoch = 0; epoch < job_.train.epochs; ++epoch)
      for (std::uint64_t begin = 0; begin < dataset_->records(); begin += workers_ * job_.train.step_records())
        step(epoch, begin);
  }

  std::uint64_t hash() const { return workerd::hash_of_parameters(layout_, parameters_.floats()); }

 private:
  // One synchronous step of the workers. `begin` is the first position of the step in the epoch. The worker of rank r
  // trains on N = step_records() positions, beginning with begin + r * N. At the end of the epoch, fewer positions or
  // none are left for it.
  void step(std::uint32_t epoch, std::uint64_t begin) {
    std::vector<update::WeightedGradient> gradients;
    for (std::uint32_t rank = 0; rank < workers_; ++rank) {
      const std::uint64_t first = begin + rank * job_.train.step_records();
      const std::uint64_t end = std::min(first + job_.train.step_records(), dataset_->records());
      std::vector<std::uint64_t> records;
      order_.records_at(epoch, std::vector<Interval>{{std::min(first, end), end}}, records);
      if (records.empty()) continue;
      compute(records, rank);
      gradients.push_back({staged_[rank], static_cast<float>(records.size())});
    }
    // The mean over the examples. If all gradients have equally many examples, this is the plain mean of the gradients.
    const bool equal = gradients.front().weight == gradients.back().weight;
    double total = 0.0;
    for (update::WeightedGradient& gradient : gradients) {
      if (equal) gradient.weight = 1.0F;
      total += static_cast<double>(gradient.weight);
    }
    // Each variable is updated by itself, because lamb needs the norm of each.
    for (std::size_t v = 0; v < layout_.model.variables.size(); ++v) {
      const std::uint64_t from = layout_.variable_begins[v];
      const std::uint64_t size = element_count(layout_.model.variables[v]);
      update::SlotSpans slots;
      for (std::size_t s = 0; s < slots_.size(); ++s) slots[s] = std::span(slots_[s]).subspan(from, size);
      std::vector<update::WeightedGradient> parts = gradients;
      for (update::WeightedGradient& part : parts) part.values = part.values.subspan(from, size);
      rule_.apply_sum({.learning_rate = update::learning_rate(job_.train, updates_, workers_),
                       .t = updates_,
                       .gradient_scale = 1.0 / total},
                      parameters_.floats().subspan(from, size), parts, slots);
    }
    ++updates_;
  }

  // Computes the gradient of one worker's records, batch_size of them at a time, and writes it to staged_.
  void compute(const std::vector<std::uint64_t>& records, std::uint32_t rank) {
    std::vector<float>& sum = staged_[rank];
    const std::uint64_t size = job_.train.batch_size;
    for (std::uint64_t part = 0; part * size < records.size(); ++part) {
      const auto some = std::span(records).subspan(part * size, std::min(size, records.size() - part * size));
      if (!batch_.fill(some)) std::exit(70);
      const std::uint64_t number = (updates_ + 1) * job_.train.accumulate + part;
      if (!model_->step(batch_.batch(), {job_.job.seed, number, rank}, {})) std::exit(70);
      const auto weight = static_cast<float>(static_cast<double>(some.size()) / static_cast<double>(records.size()));
      for (std::uint64_t i = 0; i < elements_; ++i) {
        const float g = weight * gradients_.floats()[i];
        sum[i] = part == 0 ? g : sum[i] + g;
      }
    }
  }

  const JobConfig& job_;
  const std::uint32_t workers_;
  const std::unique_ptr<input::Dataset> dataset_;
  const std::unique_ptr<workerd::Computation> model_;
  const Layout layout_;
  const std::uint64_t elements_;
  Arena arena_{ArenaKind::kPrivate};
  Memory parameters_;
  Memory gradients_;
  input::EpochOrder order_;
  input::BatchBuffer batch_;
  const update::UpdateRule rule_;
  std::vector<std::vector<float>> slots_;
  std::vector<std::vector<float>> staged_;  // by rank
  std::uint64_t updates_ = 0;
};

}  // namespace
}  // namespace disttrain

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: one_process JOB.toml WORKERS\n");
    return 64;
  }
  const auto job = disttrain::value_or_exit(disttrain::config::read_job_file(argv[1], {}));
  disttrain::OneProcess process(job.config, static_cast<std::uint32_t>(std::stoul(argv[2])));
  process.train();
  std::printf("%016llx\n", static_cast<unsigned long long>(process.hash()));
}
