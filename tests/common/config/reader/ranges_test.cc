// Settings that come over the wire instead of from a file (check_ranges).
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "common/config/reader/reader.h"

namespace disttrain::config {
namespace {

const std::string kLeast =
    "[job]\nname = \"a\"\n[model]\nbuiltin = \"mlp\"\nlayers = [4, 2]\n[data]\npath = \"/d\"\nfiles = \"x*\"\n"
    "[train]\nbatch_size = 8\nsteps = 5\n";

JobConfig resolved_with(const std::string& train) {
  const Result<JobConfig> job = read_job(kLeast + train);
  EXPECT_TRUE(job) << job.error().message;
  return job.value_or(JobConfig());
}

TEST(Ranges, WhatTheReaderTakesIsWithinThem) {
  for (const char* more :
       {"", "optimizer = { rule = \"adagrad\" }\n", "optimizer = { rule = \"rmsprop\", rho = 0.5 }\n",
        "optimizer = { rule = \"adamw\", weight_decay = 0.1, weight_decay_of = \"matrices\" }\n",
        "schedule = { kind = \"step\", every_steps = 3 }\n",
        "schedule = { kind = \"cosine\", decay_steps = 9, warmup_steps = 2 }\n",
        "mode = \"sync\"\noptimizer = { rule = \"lamb\" }\n",
        "accumulate = 3\nstate = \"lowest_rank\"\noptimizer = { rule = \"ftrl\", l1 = 0.1, l2 = 0.2 }\n",
        "clip = { kind = \"value\", value = 2 }\n", "mode = \"sync\"\naggregate = 1\n",
        "mode = \"ssp\"\nstaleness = 3\n", "profile_steps = [5, 1004]\n[checkpoint]\ndirectory = \"/c\"\n",
        "[evaluate]\nfiles = \"y*\"\n[checkpoint]\ndirectory = \"/c\"\nevery = \"90s\"\ninit_from = \"/i\"\n"
        "init_map = { \"theirs\" = \"ours\" }\n"}) {
    const Status sane = check_ranges(resolved_with(more));
    EXPECT_TRUE(sane) << more << sane.error().message;
  }
}

struct Wrong {
  const char* key;
  std::function<void(JobConfig&)> make;
};

TEST(Ranges, AValueThatNoFileCouldSayIsRefusedByItsKey) {
  const Wrong wrongs[] = {
      {"train.batch_size", [](JobConfig& job) { job.train.batch_size = 0; }},
      {"train.accumulate", [](JobConfig& job) { job.train.accumulate = 0; }},
      {"train.accumulate", [](JobConfig& job) { job.train.accumulate = 1 << 24; }},
      {"train.optimizer.rule", [](JobConfig& job) { job.train.optimizer.rule = Rule::kLamb; }},
      {"evaluate.average", [](JobConfig& job) { job.evaluate.average = 1.5; }},
      {"job.name", [](JobConfig& job) { job.job.name = "A b"; }},
      {"model.builtin", [](JobConfig& job) { job.model.builtin = "rnn"; }},
      {"model.layers", [](JobConfig& job) { job.model.layers = {4}; }},
      {"model.layers",
       [](JobConfig& job) {
         job.model.layers = {0, 2};
       }},
      {"train.steps", [](JobConfig& job) { job.train.steps = 0; }},
      {"train.optimizer.learning_rate", [](JobConfig& job) { job.train.optimizer.learning_rate = -1; }},
      {"train.optimizer.learning_rate",
       [](JobConfig& job) { job.train.optimizer.learning_rate = std::numeric_limits<double>::quiet_NaN(); }},
      {"train.schedule.every_steps", [](JobConfig& job) { job.train.schedule.kind = ScheduleKind::kStep; }},
      {"data.prefetch", [](JobConfig& job) { job.data.prefetch = 0; }},
      {"data.max_expansion", [](JobConfig& job) { job.data.max_expansion = 0; }},
      {"data.scale", [](JobConfig& job) { job.data.scale = 0; }},
      {"data.path", [](JobConfig& job) { job.data.path = std::string("/d\0x", 4); }},
      {"checkpoint.keep", [](JobConfig& job) { job.checkpoint.keep = 0; }},
      {"job.stall_timeout", [](JobConfig& job) { job.job.stall_timeout = Duration(-1); }},
  };
  for (const Wrong& wrong : wrongs) {
    JobConfig job = resolved_with("");
    wrong.make(job);
    const Status sane = check_ranges(job);
    ASSERT_FALSE(sane) << wrong.key;
    EXPECT_EQ(sane.error().code, ErrorCode::kConfig);
    EXPECT_NE(sane.error().message.find(wrong.key), std::string::npos) << sane.error().message;
  }
}

}  // namespace
}  // namespace disttrain::config
