// A generation of a job: which ps owns which shard, what the shards begin with, and the numbers that tell this
// generation from others. The loss of a ps ends a generation; the job then decides the next one. Owned by the job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/memory_fit.h"
#include "chiefd/core/tasks.h"
#include "common/layout.h"
#include "common/result.h"

namespace disttrain::chiefd {

class GenerationPlan {
 public:
  explicit GenerationPlan(const JobSetup& setup) : setup_(setup) {}

  // The newest generation that was begun; 0: none.
  Generation number() const { return number_; }
  // An earlier generation was begun, by this or a former chief.
  bool has_predecessor() const { return has_predecessor_; }
  // The model and data, as a worker has described them. Must be known before the model is placed.
  const std::optional<JobDescribed>& described() const { return described_; }
  const Layout& layout() const { return layout_; }

  // By shard. Empty: nothing was placed yet.
  const std::vector<Owner>& owners() const { return owners_; }
  bool is_owner(const Member& member) const;
  bool owns(const Member& member, ShardId shard) const {
    return shard.value < owners_.size() && owners_[shard.value].ps == member;
  }
  // The owner of shard 0. There must be owners.
  const Member& pacer() const { return owners_.front().ps; }
  // Each owner once, in the order of their first shards.
  std::vector<Member> holders() const;

  // The secret that a task shows when it opens a channel. It is on no disk: after a restart of the chief it is 0 until
  // a ps has reported it.
  std::uint64_t token() const { return token_; }
  // The number that the chief writes into the checkpoint folder. A ps that finds it has the same folder mounted.
  std::uint64_t mark() const { return mark_; }
  // The checkpoint that the generation began with. None: it began with initial values.
  const std::optional<RestorePoint>& restore() const { return restore_; }
  Step first_step() const { return restore_ ? restore_->step : Step(); }
  // The path that the initial values are read from. "": they are drawn at random, or the path isn't resolved yet.
  const std::string& init_path() const { return init_path_; }
  // The number of workers that the shards have memory for.
  std::uint32_t places() const { return places_; }

  // ---- decisions for the next one, in this order
  void describe(const JobDescribed& described) { described_ = described; }
  void forget_description() { described_.reset(); }
  void draw_numbers(Term term);
  void restore_from(std::optional<RestorePoint> point) { restore_ = std::move(point); }
  void init_from(std::string path) { init_path_ = std::move(path); }
  // Fails if the data has another number of records than when the checkpoint was made: its ledger would be wrong.
  Status check_restore() const;
  // Places the model on the connected ps tasks that aren't avoided. The shards get memory for at least `least` workers,
  // and as far as it suffices for `roster` workers and those that may join later. On failure the owners may already be
  // the new ones, whose memory doesn't suffice.
  Status place(const Tasks& tasks, const std::function<bool(TaskId)>& is_avoided, std::size_t least,
               std::size_t roster);
  void put_back(std::vector<Owner> owners, Layout layout);
  // Keeps the owners, each as the process that is connected under its task id now. Tasks must know each owner.
  void keep_owners(const Tasks& tasks);
  // Sets places(): at least `least`, and as far as the memory suffices for `roster` workers and those that may join
  // later.
  Status make_places(const Tasks& tasks, std::size_t least, std::size_t roster);
  MemoryFit memory_fit(const Tasks& tasks) const;
  // Begins the generation that was decided. Its number is above every number that the job or its checkpoint folder has
  // had.
  void begin(Generation newest_in_folder);

  // ---- after a restart of the chief
  void restore_number(Generation number) { number_ = number; }
  void take_up(const GenerationRecord& record, std::size_t roster);
  Status recompute_layout();
  // A ps has reported the secret.
  void learn_token(std::uint64_t token) { token_ = token; }

 private:
  const JobSetup& setup_;
  std::optional<JobDescribed> described_;
  Layout layout_;
  std::vector<Owner> owners_;
  std::uint64_t token_ = 0;
  std::uint64_t mark_ = 0;
  std::uint64_t numbers_drawn_ = 0;
  Generation number_;
  bool has_predecessor_ = false;
  std::optional<RestorePoint> restore_;
  std::string init_path_;
  std::uint32_t places_ = 0;
};

}  // namespace disttrain::chiefd
