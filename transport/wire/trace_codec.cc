// The codec of the events of a trace.
#include "transport/wire/control_messages.h"

namespace disttrain::wire {

static void write(const TraceEvent& event, schema::TraceEvent::Builder b) {
  b.setKind(write_enum<schema::TraceKind>(event.kind));
  b.setBegin(event.begin.time_since_epoch().count());
  b.setEnd(event.end.time_since_epoch().count());
  b.setStep(event.step);
  b.setWorker(event.worker);
  b.setIncarnation(event.incarnation.value);
  b.setSequence(event.sequence.value);
  b.setShard(event.shard.value);
  b.setBucket(event.bucket.value);
  b.setBytes(event.bytes);
}

static TraceEvent read(schema::TraceEvent::Reader r) {
  TraceEvent event;
  event.kind = read_enum(r.getKind(), kLastTraceKind, "kind of event");
  event.begin = read_instant(r.getBegin(), "an event's begin");
  event.end = read_instant(r.getEnd(), "an event's end");
  if (event.end < event.begin) malformed("an event ends before it begins");
  event.step = r.getStep();
  event.worker = r.getWorker();
  event.incarnation = Incarnation(r.getIncarnation());
  event.sequence = Sequence(r.getSequence());
  event.shard = ShardId(r.getShard());
  event.bucket = BucketId(r.getBucket());
  event.bytes = r.getBytes();
  return event;
}

void write(const TraceEvents& m, schema::TraceEvents::Builder b) {
  write_job(m, b);
  b.setPiece(m.piece);
  b.setLast(m.last);
  b.setDropped(m.dropped);
  b.setClockOffset(m.clock ? m.clock->offset.count() : 0);
  b.setClockUncertainty(m.clock ? m.clock->uncertainty.count() : -1);
  auto events = b.initEvents(list_size(m.events, kMaxTracePiece, "events"));
  for (unsigned i = 0; i < events.size(); ++i) write(m.events[i], events[i]);
}

TraceEvents read(schema::TraceEvents::Reader r) {
  auto m = read_job<TraceEvents>(r);
  m.piece = static_cast<std::uint32_t>(read_number(r.getPiece(), kMaxTracePieces - 1, "a piece's number"));
  m.last = r.getLast();
  m.dropped = r.getDropped();
  if (r.getClockUncertainty() >= 0) {
    const Duration offset(r.getClockOffset());
    if (offset < -kMaxDuration || offset > kMaxDuration)
      malformed("the clock's offset is " + std::to_string(offset.count()) + " ns; expected at most " +
                std::to_string(kMaxDuration.count()));
    m.clock = ClockOffset{offset, read_duration(r.getClockUncertainty(), "the clock's uncertainty")};
  }
  for (auto event : bounded(r.getEvents(), kMaxTracePiece, "events")) m.events.push_back(read(event));
  return m;
}

}  // namespace disttrain::wire
