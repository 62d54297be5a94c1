// A job of a few numbers, with checkpoints that tests write and read.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/shard_file.h"

namespace disttrain::checkpoint {

inline ModelSpec small_model() {
  ModelSpec model;
  model.variables = {VariableSpec{"w0", {7, 3}, VariableKind::kTrainable, {}, 7, 3},
                     VariableSpec{"mean", {3}, VariableKind::kState, {}, 1, 1},
                     VariableSpec{"w1", {3, 5}, VariableKind::kTrainable, {}, 3, 5}};
  return model;
}

// "mean" and "w1" are float64. In layout_of() they come first in the flat order, with 6 and 30 words.
inline ModelSpec model_with_doubles() {
  ModelSpec model = small_model();
  model.variables[1].dtype = model.variables[2].dtype = disttrain::DType::kFloat64;
  return model;
}

// A layout with buckets of so many words, which go to the shards in turn. The last variable comes first in the flat
// order.
inline Layout layout_of(const ModelSpec& model, std::uint32_t shards, std::uint64_t bucket_words) {
  Layout layout{model, shards, std::vector<std::uint64_t>(model.variables.size()), {}};
  std::uint64_t flat = 0;
  for (std::size_t v = model.variables.size(); v-- > 0;) {
    layout.variable_begins[v] = flat;
    flat += word_count(model.variables[v]);
  }
  std::vector<std::uint64_t> sizes(shards, 0);
  for (std::uint64_t begin = 0; begin < flat; begin += bucket_words) {
    const auto shard = static_cast<std::uint32_t>(layout.buckets.size() % shards);
    const std::uint64_t words = std::min(bucket_words, flat - begin);
    layout.buckets.push_back({ShardId(shard), begin, sizes[shard], words});
    sizes[shard] += words;
  }
  EXPECT_TRUE(validate(layout));
  return layout;
}

// The content of one shard. In held_by(), word i of the flat order has the parameter base + i; its value in slot s
// is larger by 1000 (s + 1).
struct Held {
  std::vector<float> parameters;
  std::vector<std::vector<float>> slots;

  bool operator==(const Held&) const = default;
  ShardContent content() const {
    ShardContent content{parameters, {}};
    for (const auto& slot : slots) content.slots.push_back(slot);
    return content;
  }
  std::vector<std::span<float>> slot_spans() { return std::vector<std::span<float>>(slots.begin(), slots.end()); }
};

inline Held held_by(const Layout& layout, std::uint32_t shard, float base, std::uint32_t slots) {
  Held held;
  for (std::uint32_t array = 0; array <= slots; ++array) {
    std::vector<float> values(shard_words(layout, ShardId(shard)));
    for (const Bucket& bucket : layout.buckets)
      for (std::uint64_t i = 0; bucket.shard.value == shard && i < bucket.words; ++i)
        values[bucket.shard_begin + i] = base + static_cast<float>(bucket.flat_begin + i + 1000 * array);
    if (array == 0)
      held.parameters = std::move(values);
    else
      held.slots.push_back(std::move(values));
  }
  return held;
}

inline Held empty_shard(const Layout& layout, std::uint32_t shard, std::uint32_t slots) {
  const std::vector<float> nothing(shard_words(layout, ShardId(shard)), -1.0F);
  return Held{nothing, std::vector<std::vector<float>>(slots, nothing)};
}

// Adds other files to an attempt and to its manifest.
using AddFiles = std::function<Status(const std::string& attempt, Manifest& manifest)>;

// Writes and commits a checkpoint with the values of held_by(), where base is the step. The folder must exist.
inline Result<std::string> save(Files& files, const std::string& folder, const Layout& layout, std::uint64_t generation,
                                std::uint64_t step, std::uint32_t slots = 1, std::uint64_t attempt = 1,
                                bool has_average = false, const AddFiles& add_files = {}) {
  if (Status begun = begin_attempt(files, folder, Generation(generation), attempt); !begun)
    return tl::unexpected(begun.error());
  const std::string path = attempt_path(folder, Generation(generation), attempt);
  Manifest manifest;
  manifest.job = "small";
  manifest.generation = Generation(generation);
  manifest.step = Step(step);
  manifest.attempt = attempt;
  manifest.slots = slots;
  manifest.has_average = has_average;
  manifest.rule = "momentum";
  manifest.seed = 0xfedcba9876543210u;
  manifest.variables = variables_of(layout);
  manifest.pacer.ledger = {EpochLedger{2, {{0, 10}, {20, 30}}}};
  for (std::uint32_t s = 0; s < layout.shards; ++s) {
    const Held held = held_by(layout, s, static_cast<float>(step), slots);
    Result<FileEntry> entry = write_shard(files, path, layout, ShardId(s), held.content(), {{"step", "x"}});
    if (!entry) return tl::unexpected(entry.error());
    if (Status synced = files.sync_directory(path); !synced) return tl::unexpected(synced.error());
    manifest.files.push_back(std::move(*entry));
    manifest.shards.push_back(ShardEntry{
        Step(step),
        held.parameters.size(),
        {WorkerEntry{Member{TaskId{Role::kWorker, 1}, Incarnation(0xf000000000000001u)}, Sequence(7), Step(3)}}});
  }
  if (add_files)
    if (Status added = add_files(path, manifest); !added) return tl::unexpected(added.error());
  return commit(files, folder, std::move(manifest));
}

// Checks that every shard of a layout loads the values that save() wrote for the checkpoint's step.
inline Status load(Files& files, const OpenCheckpoint& from, const Layout& layout, std::uint32_t slots = 1) {
  for (std::uint32_t s = 0; s < layout.shards; ++s) {
    Held held = empty_shard(layout, s, slots);
    const auto spans = held.slot_spans();
    if (Status read = read_shard(files, from.path, from.manifest, layout, ShardId(s), held.parameters, spans); !read)
      return read;
    if (held != held_by(layout, s, static_cast<float>(from.manifest.step.value), slots))
      return fail(ErrorCode::kSoftware, "shard " + std::to_string(s) + " has other values than were saved");
  }
  return {};
}

}  // namespace disttrain::checkpoint
