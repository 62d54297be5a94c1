// disttrain bench update: measures how fast one thread applies gradients to parameters, for each update rule. The
// memory of parameters, slots and gradients is that of a real shard (shards/store).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>

#include "chiefd/core/placement.h"
#include "common/daemon/clock.h"
#include "common/daemon/startup.h"
#include "common/doubles.h"
#include "common/os/arena.h"
#include "shards/store/shard_store.h"
#include "tools/disttrain/bench/sizes.h"
#include "tools/disttrain/bench/spread.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

// A round repeats an update for this long.
constexpr Duration kRoundTime = std::chrono::milliseconds(20);

struct NamedRule {
  const char* name;
  Rule rule;
};
constexpr NamedRule kRules[] = {
    {"sgd", Rule::kSgd},         {"momentum", Rule::kMomentum}, {"nesterov", Rule::kNesterov},
    {"adagrad", Rule::kAdagrad}, {"rmsprop", Rule::kRmsprop},   {"adam", Rule::kAdam},
    {"adamw", Rule::kAdamw},     {"lamb", Rule::kLamb},         {"ftrl", Rule::kFtrl}};

// A shard with one variable, which applies the same gradient again and again. The gradient is staged, as in sync, so
// each byte of it has a place of its own in memory.
class Subject {
 public:
  Subject(Rule rule, const Layout& layout)
      : store_(layout, ShardId(0), options_of(rule), {}),
        buckets_(buckets_of(layout, ShardId(0))),
        is_by_variable_(rule == Rule::kLamb),
        plan_(std::make_shared<shards::SumPlan>()) {
    plan_->terms = {{shards::Landing{shards::Landing::Kind::kStaging, shards::Place(0), 0}, 1}};
    plan_->at.learning_rate = 1e-3;
    for (const BucketId bucket : buckets_) {
      const std::span<float> gradient = store_.landing(plan_->terms[0].landing, bucket);
      with_type(dtype_of(layout, bucket), [gradient]<typename T>(T) {
        const std::span<T> values = values_in<T>(gradient);
        std::fill(values.begin(), values.end(), static_cast<T>(1e-3));
      });
    }
  }

  void update() {
    if (is_by_variable_) store_.prepare(*plan_);
    for (const BucketId bucket : buckets_) store_.sum_and_apply(shards::SumAndApply{bucket, plan_});
    ++plan_->at.count;
  }

 private:
  static shards::StoreOptions options_of(Rule rule) {
    shards::StoreOptions options;
    options.train.mode = Mode::kSync;
    options.train.optimizer.rule = rule;
    options.places = 1;
    options.is_empty = true;  // the values don't matter, and to draw them takes long
    return options;
  }

  shards::ShardStore store_;
  const std::vector<BucketId> buckets_;
  const bool is_by_variable_;
  const std::shared_ptr<shards::SumPlan> plan_;
};

// Repeats `work` for each round. Returns the rates of the rounds.
template <typename Work>
Spread rates_of(std::uint64_t bytes, std::uint32_t rounds, Work work) {
  work();  // touches the memory
  std::vector<double> rates;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::uint64_t times = 0;
    const Instant begin = daemon::now();
    Duration time{};
    do {
      work();
      ++times;
      time = daemon::now() - begin;
    } while (time < kRoundTime);
    rates.push_back(static_cast<double>(bytes * times) / to_seconds(time) / 1e9);
  }
  return spread_of(rates);
}

Result<Layout> layout_of(std::uint64_t bytes, DType dtype) {
  ModelSpec model;
  VariableSpec variable;
  variable.name = "parameters";
  variable.dtype = dtype;
  variable.shape = {bytes / size_of(dtype)};
  model.variables = {variable};
  return chiefd::place(model, Placement::kRoundRobin, 1);
}

Spread measure_memcpy(std::uint64_t bytes, std::uint32_t rounds) {
  Arena arena(ArenaKind::kPrivate);
  Memory from(arena, bytes, Paging::kTouched), to(arena, bytes, Paging::kTouched);
  std::fill(from.floats().begin(), from.floats().end(), 1e-3F);
  return rates_of(bytes, rounds, [&] {
    std::memcpy(to.floats().data(), from.floats().data(), bytes);
    asm volatile("" : : "r"(to.floats().data()) : "memory");  // otherwise the compiler may leave the copy out
  });
}

struct Row {
  std::string rule;  // "memcpy" in the first row
  std::string dtype;
  std::vector<Spread> rates;  // by size
};

Result<std::vector<Row>> measure(const std::vector<std::uint64_t>& sizes, std::uint32_t rounds) {
  std::vector<Row> rows = {{"memcpy", "", {}}};
  for (const std::uint64_t bytes : sizes) rows[0].rates.push_back(measure_memcpy(bytes, rounds));
  for (const NamedRule& rule : kRules)
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      Row& row = rows.emplace_back(Row{rule.name, to_string(dtype), {}});
      for (const std::uint64_t bytes : sizes) {
        const Result<Layout> layout = layout_of(bytes, dtype);
        if (!layout) return tl::unexpected<Error>(layout.error());
        Subject subject(rule.rule, *layout);
        row.rates.push_back(rates_of(bytes, rounds, [&subject] { subject.update(); }));
      }
    }
  return rows;
}

Json json_of(const Row& row, const std::vector<std::uint64_t>& sizes) {
  Json json = Json::object();
  json["rule"] = row.rule;
  if (!row.dtype.empty()) json["dtype"] = row.dtype;
  json["sizes"] = Json::array();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    json["sizes"].push_back({{"bytes", sizes[i]}, {"gb_per_second", json_of(row.rates[i])}});
  return json;
}

void print(const std::vector<Row>& rows, const std::vector<std::uint64_t>& sizes) {
  std::vector<std::string> header = {"rule", "dtype"};
  for (const std::uint64_t bytes : sizes) {
    header.push_back(size_text(bytes) + ", GB/s");
    header.push_back("of memcpy");
  }
  Table table(header);
  for (const Row& row : rows) {
    std::vector<std::string> cells = {row.rule, row.dtype};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      cells.push_back(spread_text(row.rates[i]));
      cells.push_back(figure_text(row.rates[i].median / rows[0].rates[i].median));
    }
    table.add(std::move(cells));
  }
  std::cout << table.text();
}

}  // namespace

int bench_update(const BenchUpdateOptions& options) {
  const auto fail_with = [](const Error& error) { return daemon::report("disttrain bench update", error); };
  const auto sizes = parse_sizes(options.sizes);
  if (!sizes) return fail_with(sizes.error());
  for (const std::uint64_t bytes : *sizes)
    if (bytes % sizeof(double) != 0)
      return fail_with(
          {ErrorCode::kUsage, "--sizes: " + size_text(bytes) + " isn't a multiple of 8 bytes, the size of a float64"});
  const auto rows = measure(*sizes, options.rounds);
  if (!rows) return fail_with(rows.error());
  if (!options.json) {
    std::cout << "one thread; bytes of gradients per second; median of " << options.rounds
              << (options.rounds == 1 ? " round" : " rounds") << " (min - max)\n";
    print(*rows, *sizes);
    return 0;
  }
  Json json = {
      {"rounds", options.rounds}, {"memcpy", json_of(rows->front(), *sizes)["sizes"]}, {"rules", Json::array()}};
  for (auto row = rows->begin() + 1; row != rows->end(); ++row) json["rules"].push_back(json_of(*row, *sizes));
  std::cout << line_of(json) << '\n';
  return 0;
}

}  // namespace disttrain::cli
