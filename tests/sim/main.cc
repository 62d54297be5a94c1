// Runs many seeds of the simulator, or runs one seed and prints its trace. See tools/simulate.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <string>

#include "tests/sim/simulation.h"

int main(int argc, char** argv) {
  CLI::App app("Simulates clusters, one for each seed, and checks what must never happen", "simulate");
  std::uint64_t from = 0;
  std::uint64_t to = 1000;
  std::uint64_t replay = 0;
  app.add_option("--from", from, "first seed");
  app.add_option("--to", to, "the seed behind the last one");
  CLI::Option* one = app.add_option("--replay", replay, "runs this seed alone, and prints its trace");
  CLI11_PARSE(app, argc, argv);
  disttrain::sim::take_failed_checks_for_violations();
  if (*one) {
    const disttrain::sim::Outcome outcome = disttrain::sim::simulate(replay, true);
    for (const std::string& line : outcome.words) std::cout << line << '\n';
    std::cout << (outcome.violation.empty() ? "all laws held" : "VIOLATED " + outcome.violation) << '\n';
    return outcome.violation.empty() ? 0 : 1;
  }
  std::uint64_t failed = 0;
  std::uint64_t finished = 0;
  disttrain::sim::Happenings happenings{};
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = from; seed < to; ++seed) {
    const disttrain::sim::Outcome outcome = disttrain::sim::simulate(seed, false);
    finished += outcome.finished ? 1 : 0;
    for (std::size_t i = 0; i < happenings.size(); ++i) happenings[i] += outcome.happenings[i];
    if (outcome.violation.empty()) continue;
    ++failed;
    std::cout << "seed " << seed << ": " << outcome.violation << "; again: tools/simulate --replay " << seed
              << std::endl;
  }
  // tools/simulate reads these lines and adds the counts up.
  for (std::size_t i = 0; i < happenings.size(); ++i)
    std::cout << "count " << happenings[i] << ' ' << to_string(static_cast<disttrain::sim::Happening>(i)) << '\n';
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << to - from << " seeds, " << failed << " violations, " << finished << " first jobs finished, "
            << static_cast<double>(to - from) / seconds << " seeds/s\n";
  return failed == 0 ? 0 : 1;
}
