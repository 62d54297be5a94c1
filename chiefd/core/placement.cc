#include "chiefd/core/placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

#include "common/bounds.h"
#include "common/check.h"
#include "common/update/update_rule.h"

namespace disttrain::chiefd {
namespace {

// A whole variable, or a part of its rows. Lists of pieces are in the order of the flat array of parameters.
struct Piece {
  std::uint32_t variable = 0;
  std::uint64_t words = 0;
  std::uint32_t shard = 0;
  DType dtype = DType::kFloat32;
};

// Buckets begin at multiples of 64 bytes of the flat array where they can. So vectors of a bucket don't cross lines of
// the cache.
constexpr std::uint64_t kLineWords = 16;

// The intended size of a bucket. cut() may move each end of a bucket by less than kLineWords, and then by up to half of
// kWholeWords. So a bucket never exceeds kMaxBucketWords.
constexpr std::uint64_t kTargetWords = kMaxBucketWords - kWholeWords - kLineWords;

// BucketSize::kSmall
constexpr std::uint64_t kSmallBucketWords = 32 * 1024;
constexpr std::uint64_t kMostSmallBuckets = 4;  // for each shard

std::uint64_t ceil_quotient(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

std::uint64_t sum_of(const std::vector<Piece>& pieces) {
  std::uint64_t total = 0;
  for (const Piece& piece : pieces) total += piece.words;
  return total;
}

// Cuts consecutive pieces into about `count` buckets of similar size, and returns the end of each bucket. If a cut
// falls into a small piece that must stay whole, the cut moves to the nearer edge of that piece. If two cuts then fall
// on the same edge, there is one bucket less. A cut never divides a double. All pieces have the same dtype. They begin
// at the word `flat` of the flat array.
std::vector<std::uint64_t> cut(const std::vector<Piece>& pieces, std::uint64_t flat, std::uint64_t count) {
  const std::uint64_t total = sum_of(pieces);
  std::vector<std::uint64_t> ends;
  std::uint64_t piece_begin = 0;
  std::size_t p = 0;
  for (std::uint64_t i = 1; i <= count; ++i) {
    std::uint64_t end = total / count * i + total % count * i / count;
    while (piece_begin + pieces[p].words < end) piece_begin += pieces[p++].words;
    const std::uint64_t piece_end = piece_begin + pieces[p].words;
    if (pieces[p].words < kWholeWords)
      end = end - piece_begin < piece_end - end ? piece_begin : piece_end;
    else if (i < count)
      end -= std::min(end - piece_begin, (flat + end) % kLineWords);
    if (end > (ends.empty() ? 0 : ends.back())) ends.push_back(end);
  }
  return ends;
}

std::uint64_t flat_end(const Layout& layout) {
  return layout.buckets.empty() ? 0 : layout.buckets.back().flat_begin + layout.buckets.back().words;
}

// Appends buckets with the given ends to the layout. `owner` returns the shard of the i-th bucket.
template <typename OwnerOf>
void append_buckets(Layout& layout, const std::vector<std::uint64_t>& ends, std::vector<std::uint64_t>& shard_ends,
                    OwnerOf owner) {
  const std::uint64_t flat = flat_end(layout);
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::uint32_t shard = owner(i);
    layout.buckets.push_back(Bucket{ShardId(shard), flat + begin, shard_ends[shard], ends[i] - begin});
    shard_ends[shard] += ends[i] - begin;
    begin = ends[i];
  }
}

// All variables, last layer first. But the float64 variables come before the others, as a layout needs them.
std::vector<Piece> gradient_order(const ModelSpec& model) {
  std::vector<Piece> pieces;
  for (std::uint32_t v = static_cast<std::uint32_t>(model.variables.size()); v-- > 0;)
    pieces.push_back(Piece{v, word_count(model.variables[v]), 0, model.variables[v].dtype});
  std::stable_partition(pieces.begin(), pieces.end(), [](const Piece& p) { return p.dtype == DType::kFloat64; });
  return pieces;
}

std::uint32_t emptiest(const std::vector<std::uint64_t>& load) {
  return static_cast<std::uint32_t>(std::min_element(load.begin(), load.end()) - load.begin());
}

std::vector<Piece> round_robin(const ModelSpec& model, std::uint32_t shards) {
  std::vector<Piece> pieces = gradient_order(model);
  for (Piece& piece : pieces) piece.shard = piece.variable % shards;
  return pieces;
}

std::vector<Piece> greedy(const ModelSpec& model, std::uint32_t shards) {
  std::vector<Piece> pieces = gradient_order(model);
  std::vector<std::size_t> by_size(pieces.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&pieces](std::size_t a, std::size_t b) { return pieces[a].words > pieces[b].words; });
  std::vector<std::uint64_t> load(shards, 0);
  for (std::size_t i : by_size) {
    pieces[i].shard = emptiest(load);
    load[pieces[i].shard] += pieces[i].words;
  }
  return pieces;
}

// Goes through the variables in gradient order. A large variable is cut into one part for each shard. A small variable
// goes to one shard, which has few words so far.
std::vector<Piece> partitioned(const ModelSpec& model, std::uint32_t shards) {
  std::vector<Piece> pieces;
  std::vector<std::uint64_t> load(shards, 0);
  for (const Piece& variable : gradient_order(model)) {
    const auto& shape = model.variables[variable.variable].shape;
    const std::uint64_t rows = shape.empty() ? 1 : shape[0];
    if (variable.words < kWholeWords || rows < shards) {
      // Neighbours on the same shard share a bucket. So a small variable goes to the shard of the small variable before
      // it, as long as that shard hasn't got many more words than the emptiest one.
      const bool joins = !pieces.empty() && pieces.back().words < kWholeWords &&
                         load[pieces.back().shard] < load[emptiest(load)] + kWholeWords;
      const std::uint32_t shard = joins ? pieces.back().shard : emptiest(load);
      pieces.push_back(Piece{variable.variable, variable.words, shard, variable.dtype});
      load[shard] += variable.words;
      continue;
    }
    for (std::uint32_t part = 0; part < shards; ++part) {
      const std::uint64_t part_rows = rows * (part + 1) / shards - rows * part / shards;
      const std::uint64_t words = part_rows * (variable.words / rows);
      pieces.push_back(Piece{variable.variable, words, part, variable.dtype});
      load[part] += words;
    }
  }
  return pieces;
}

// Sets the position of each variable in the flat array, which is the position of its first piece.
void set_variable_begins(Layout& layout, const std::vector<Piece>& pieces) {
  layout.variable_begins.assign(layout.model.variables.size(), 0);
  std::optional<std::uint32_t> current;
  std::uint64_t flat = 0;
  for (const Piece& piece : pieces) {
    if (current != piece.variable) layout.variable_begins[piece.variable] = flat;
    current = piece.variable;
    flat += piece.words;
  }
}

// The same number for each shard, because a shard with one bucket more would be the slowest.
std::uint64_t buckets_for_each_shard(std::uint64_t words, std::uint32_t shards, BucketSize size) {
  const std::uint64_t fewest = ceil_quotient(words, shards * kTargetWords);
  if (size == BucketSize::kLarge) return fewest;
  return std::max(fewest, std::min(kMostSmallBuckets, words / (shards * kSmallBucketWords)));
}

void place_balanced(Layout& layout, std::uint32_t shards, BucketSize size) {
  const std::vector<Piece> pieces = gradient_order(layout.model);
  set_variable_begins(layout, pieces);
  std::vector<std::uint64_t> shard_ends(shards, 0);
  const auto place_some = [&layout, &shard_ends, shards, size](const std::vector<Piece>& some) {
    if (some.empty()) return;
    const std::uint64_t count = shards * buckets_for_each_shard(sum_of(some), shards, size);
    const std::size_t first = layout.buckets.size();
    append_buckets(layout, cut(some, flat_end(layout), count), shard_ends,
                   [first, shards](std::size_t i) { return static_cast<std::uint32_t>((first + i) % shards); });
  };
  const auto is_double = [](const Piece& piece) { return piece.dtype == DType::kFloat64; };
  const auto floats = std::find_if_not(pieces.begin(), pieces.end(), is_double);
  place_some({pieces.begin(), floats});
  place_some({floats, pieces.end()});
}

// Makes the buckets of pieces whose shard is already set. Neighbouring pieces of the same dtype on the same shard make
// a run, and each run is cut into as few buckets as possible.
void place_runs(Layout& layout, std::uint32_t shards, const std::vector<Piece>& pieces) {
  set_variable_begins(layout, pieces);
  std::vector<std::uint64_t> shard_ends(shards, 0);
  std::vector<Piece> run;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    run.push_back(pieces[i]);
    const Piece* next = i + 1 < pieces.size() ? &pieces[i + 1] : nullptr;
    if (next != nullptr && next->shard == run.front().shard && next->dtype == run.front().dtype) continue;
    const std::uint64_t total = sum_of(run);
    const std::uint64_t count = total <= kMaxBucketWords ? 1 : ceil_quotient(total, kTargetWords);
    append_buckets(layout, cut(run, flat_end(layout), count), shard_ends,
                   [&run](std::size_t) { return run.front().shard; });
    run.clear();
  }
}

std::vector<Piece> grouped_by_shard(std::vector<Piece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    const bool a_floats = a.dtype != DType::kFloat64;
    const bool b_floats = b.dtype != DType::kFloat64;
    return std::tie(a_floats, a.shard) < std::tie(b_floats, b.shard);
  });
  return pieces;
}

Layout place_unchecked(const ModelSpec& model, Placement placement, std::uint32_t shards, BucketSize size) {
  Layout layout{.model = model, .shards = shards, .variable_begins = {}, .buckets = {}};
  switch (placement) {
    case Placement::kBalanced:
      place_balanced(layout, shards, size);
      break;
    case Placement::kRoundRobin:
      place_runs(layout, shards, grouped_by_shard(round_robin(model, shards)));
      break;
    case Placement::kGreedy:
      place_runs(layout, shards, grouped_by_shard(greedy(model, shards)));
      break;
    case Placement::kPartitioned:
      place_runs(layout, shards, partitioned(model, shards));
      break;
  }
  return layout;
}

std::uint32_t shards_with_buckets(const Layout& layout) {
  std::vector<bool> has(layout.shards, false);
  for (const Bucket& bucket : layout.buckets) has[bucket.shard.value] = true;
  return static_cast<std::uint32_t>(std::count(has.begin(), has.end(), true));
}

// The largest number below `shards` for which every shard gets a piece. The search is short, because a cluster offers a
// limited number of shards. It always finds a number, because one shard is always possible.
std::uint32_t largest_below(const ModelSpec& model, Placement placement, std::uint32_t shards, BucketSize size) {
  while (shards > 1) {
    --shards;
    if (shards_with_buckets(place_unchecked(model, placement, shards, size)) == shards) break;
  }
  return shards;
}

Status check_model(const ModelSpec& model) {
  if (model.variables.empty()) return fail(ErrorCode::kConfig, "the model has no variables: there is nothing to place");
  for (const VariableSpec& variable : model.variables)
    if (element_count(variable) == 0)
      return fail(ErrorCode::kConfig,
                  "variable " + variable.name + " has no elements; each dimension must be at least 1");
  if (element_count(model) > kMaxElements)
    return fail(ErrorCode::kConfig, "the model has " + std::to_string(element_count(model)) +
                                        " elements; expected at most " + std::to_string(kMaxElements));
  return {};
}

// Checks that the layout doesn't have more buckets than the wire allows.
Result<Layout> with_few_buckets(Layout layout) {
  if (layout.buckets.size() <= kMaxBuckets) return layout;
  return fail(ErrorCode::kConfig, "the model falls into " + std::to_string(layout.buckets.size()) +
                                      " buckets; expected at most " + std::to_string(kMaxBuckets) +
                                      ": set job.placement to \"balanced\", or set job.shards to a smaller number");
}

std::string plural(std::uint32_t count) {
  return std::to_string(count) + (count == 1 ? " shard" : " shards");
}

}  // namespace

Placement placement_of(const JobConfig& job) {
  const bool is_whole = update::UpdateRule(job.train).is_by_variable();
  return is_whole && job.job.placement == Placement::kBalanced ? Placement::kGreedy : job.job.placement;
}

BucketSize bucket_size_for(std::size_t workers) {
  return workers == 1 ? BucketSize::kSmall : BucketSize::kLarge;
}

Result<Layout> place(const ModelSpec& model, Placement placement, std::uint32_t shards, BucketSize size) {
  DISTTRAIN_CHECK_GE(shards, 1u);
  if (Status status = check_model(model); !status) return tl::unexpected(status.error());
  Layout layout = place_unchecked(model, placement, shards, size);
  if (shards_with_buckets(layout) == shards) return with_few_buckets(std::move(layout));
  return fail(ErrorCode::kConfig, "the model can't be divided among " + plural(shards) + " (the model has " +
                                      std::to_string(model.variables.size()) + " variables, with " +
                                      std::to_string(element_count(model)) + " elements in all): set job.shards to " +
                                      std::to_string(largest_below(model, placement, shards, size)) +
                                      " or fewer, or to \"auto\"");
}

std::uint32_t auto_shards(std::uint64_t parameter_bytes, std::size_t workers, std::uint32_t offered) {
  DISTTRAIN_CHECK_GE(offered, 1u);
  constexpr std::size_t kFewWorkers = 8;  // so few don't need more shards
  const std::uint64_t wanted =
      ceil_quotient(parameter_bytes * std::max(workers, kFewWorkers), kFewWorkers * 1024 * 1024);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, offered));
}

Result<Layout> place_on(const ModelSpec& model, Placement placement, std::uint32_t asked, std::size_t workers,
                        std::uint32_t offered) {
  if (asked > offered)
    return fail(ErrorCode::kConfig, "job.shards asks for " + plural(asked) + ", but the ps tasks offer " +
                                        std::to_string(offered) + " together: set job.shards to " +
                                        std::to_string(offered) + " or fewer, or raise shards in [[ps]]");
  const BucketSize size = bucket_size_for(workers);
  if (asked > 0) return place(model, placement, asked, size);
  if (Status status = check_model(model); !status) return tl::unexpected(status.error());
  const std::uint32_t wanted = auto_shards(word_count(model) * sizeof(float), workers, offered);
  if (Layout layout = place_unchecked(model, placement, wanted, size); shards_with_buckets(layout) == wanted)
    return with_few_buckets(std::move(layout));
  return with_few_buckets(place_unchecked(model, placement, largest_below(model, placement, wanted, size), size));
}

std::vector<TaskId> assign_owners(const std::vector<Offer>& offers, std::uint32_t shards) {
  std::vector<TaskId> owners;
  for (std::uint32_t turn = 0; owners.size() < shards; ++turn) {
    const std::size_t before = owners.size();
    for (const Offer& offer : offers)
      if (offer.threads > turn && owners.size() < shards) owners.push_back(offer.ps);
    DISTTRAIN_CHECK_GE(owners.size(), before + 1);
  }
  return owners;
}

}  // namespace disttrain::chiefd
