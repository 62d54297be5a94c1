// PsExchange has one channel to each shard of a job. It sends payloads directly from the gradient array and receives
// them directly into the parameter array. Requests to several shards are under way at the same time.
//
// A shard sends at least one frame on each channel in every heartbeat interval. If it has nothing else to send, it
// sends FrameType::kAlive. So a channel on which nothing arrives for Timeouts::silent counts as lost, even if no answer
// is due.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <vector>

#include "common/layout.h"
#include "common/messages/session.h"
#include "common/timeouts.h"
#include "common/trace/recorder.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"
#include "workerd/exchange/exchange.h"

namespace disttrain::workerd {

struct PsExchangeOptions {
  std::string cluster;
  std::uint64_t cluster_hash = 0;
  JobId job;
  Generation generation;
  std::uint64_t token = 0;
  Member self;
  std::vector<Owner> owners;  // owner of each shard of the layout, by shard
  Timeouts timeouts;
  // The arena of the gradients and parameters, if it is shared; null: shards of this host can't use them in place.
  const Arena* arena = nullptr;
  TraceRecorder* trace = nullptr;  // records the frames; null: the job has no profile
};

class PsExchange final : public Exchange {
 public:
  // All references outlive the exchange.
  PsExchange(asio::io_context& loop, transport::Transport& transport, const Layout& layout, PsExchangeOptions options,
             ExchangeHandler& handler);
  ~PsExchange() override;

  Wires wires() const override;
  void open(const Roster& roster) override;
  void abort() override;
  void close() override;
  void push(const SendPush& send, std::span<const float> gradients) override;
  void pull(const SendPull& send) override;
  void mark(const SendMark& send) override;

 private:
  class Link;
  using Clock = asio::steady_timer::clock_type;
  // The state of one ps. Several channels may lead to the same ps.
  struct Ps {
    Clock::time_point heard;      // time at which the ps last sent anything
    bool has_complained = false;  // the handler was told that the ps is lost or unreachable
  };

  void watch();
  bool is_traced() const { return options_.trace != nullptr && options_.trace->is_on(); }
  wire::FrameHeader header(wire::FrameType type, Sequence sequence) const;

  asio::io_context& loop_;
  transport::Transport& transport_;
  const Layout& layout_;
  const PsExchangeOptions options_;
  ExchangeHandler& handler_;
  wire::ScratchBuffer scratch_;
  asio::steady_timer watch_timer_;
  Clock::time_point watched_;  // time of the last check of the links
  std::map<TaskId, Ps> ps_;
  std::vector<std::unique_ptr<Link>> links_;                    // by shard
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with the timer's handler
};

}  // namespace disttrain::workerd
