// Exchange: the interface through which a worker sends gradients and receives parameters. ps_exchange.h implements it
// with connections to the shards of a job. A second implementation, all-reduce among the workers, is planned.
//
// All calls come from the loop of the worker's step thread. The same thread calls the engine, so a step needs no thread
// switch between its computation and the network.
#pragma once

#include <span>
#include <string>

#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/result.h"
#include "workerd/core/events.h"

namespace disttrain::workerd {

// Gets the exchange's reports. The exchange calls these functions on its loop, but never from inside a call to open(),
// push() or another of its own functions.
class ExchangeHandler {
 public:
  virtual ~ExchangeHandler() = default;

  // The channel is open, for the first time or after it was lost. `last` is the last frame that the shard has taken.
  virtual void on_channel_opened(ShardId shard, Sequence last) = 0;
  // The channel was open and is lost. The exchange keeps dialling the shard until the channel is open again, the
  // shard refuses it, or close() is called. `lasts` is the time since the shard's ps last sent anything.
  virtual void on_channel_lost(ShardId shard, const std::string& reason, Duration lasts) = 0;
  // The channel isn't open, and its ps has been silent for longer than Timeouts::silent. Called after each failed
  // attempt to dial it.
  virtual void on_unreachable(ShardId shard, const std::string& reason, Duration lasts) = 0;
  // The shard's ps answers again after on_channel_lost or on_unreachable. Its answer may be a refusal.
  virtual void on_reached(ShardId shard) = 0;
  // A channel can't be opened, and the exchange gives up dialling.
  virtual void on_refused(const Error& why) = 0;

  // A frame of parameters has arrived. Its payload is already in landing().
  virtual void on_parameters(ShardId shard, const Parameters& parameters) = 0;
  virtual void on_acknowledge(ShardId shard, const Acknowledge& acknowledge) = 0;
  virtual void on_mark_taken(ShardId shard, const MarkTaken& taken) = 0;

  // Returns the flat array for received parameters, with all elements of the layout. The exchange calls this for each
  // frame. It writes to the array only while the loop runs.
  virtual std::span<float> landing() = 0;
};

class Exchange {
 public:
  // Closes the exchange.
  virtual ~Exchange() = default;

  // The kinds of the connections that are open.
  virtual Wires wires() const = 0;

  // Dials the tasks with which this worker exchanges gradients. Which tasks these are may depend on `roster`. Calls
  // on_channel_opened for each channel.
  virtual void open(const Roster& roster) = 0;
  // Drops the channels and everything that is under way. open() may be called afterwards.
  virtual void abort() = 0;
  // Closes the channels. After that the exchange doesn't call the handler any more.
  virtual void close() = 0;

  // The three functions below send a frame. If the channel isn't open, they drop the frame. After on_channel_opened
  // the caller sends the missing frames again. `gradients` is the flat array with the index send.gradients. The caller
  // must not change the frame's bucket in this array before the frame is acknowledged.
  virtual void push(const SendPush& send, std::span<const float> gradients) = 0;
  virtual void pull(const SendPull& send) = 0;
  virtual void mark(const SendMark& send) = 0;
};

}  // namespace disttrain::workerd
