// PsExchange: one channel to each shard of a job. Payloads are sent straight from the gradients and received straight
// into the parameters. Requests to several shards are in flight at once.
//
// A shard sends something on each channel within every heartbeat interval (FrameType::kAlive if nothing else). A
// channel on which nothing arrives for Timeouts::silent counts as lost, whether or not an answer is due.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <vector>

#include "common/layout.h"
#include "common/messages/session.h"
#include "common/timeouts.h"
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
  std::vector<Owner> owners;  // of each shard of the layout
  Timeouts timeouts;
};

class PsExchange final : public Exchange {
 public:
  // All references outlive the exchange.
  PsExchange(asio::io_context& loop, transport::Transport& transport, const Layout& layout, PsExchangeOptions options,
             ExchangeHandler& handler);
  ~PsExchange() override;

  void open(const Roster& roster) override;
  void abort() override;
  void close() override;
  void push(const SendPush& send, std::span<const float> gradients) override;
  void pull(const SendPull& send) override;
  void mark(const SendMark& send) override;

 private:
  class Link;
  using Clock = asio::steady_timer::clock_type;
  // One ps, which may serve several channels.
  struct Ps {
    Clock::time_point heard;  // when it was last heard
    bool has_complained = false;
  };

  void watch();
  wire::FrameHeader header(wire::FrameType type, Sequence sequence) const;

  asio::io_context& loop_;
  transport::Transport& transport_;
  const Layout& layout_;
  const PsExchangeOptions options_;
  ExchangeHandler& handler_;
  wire::ScratchBuffer scratch_;
  asio::steady_timer watch_timer_;
  Clock::time_point watched_;  // when the links were last checked
  std::map<TaskId, Ps> ps_;
  std::vector<std::unique_ptr<Link>> links_;                    // by shard
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with the timer's handler
};

}  // namespace disttrain::workerd
