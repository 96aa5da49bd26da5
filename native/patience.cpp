// SPDX-License-Identifier: Apache-2.0
#include "patience.h"

#include <poll.h>
#include <time.h>

#include <cstdio>

namespace native {

u64 now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return u64(t.tv_sec) * 1000000000u + u64(t.tv_nsec);
}

namespace {

// Marks PEs whose process has died as failed, for everybody.
void find_deaths() {
  const pgas::State &s = g.state;
  std::vector<pollfd> fds;
  std::vector<i64> pes;
  for (i64 pe = 0; pe < s.n_pes; pe++) {
    if (g.pidfds[size_t(pe)] < 0 || pgas::arch::load_acquire(&s.status(pe)->phase) != u32(pgas::Phase::running)) continue;
    fds.push_back({g.pidfds[size_t(pe)], POLLIN, 0});
    pes.push_back(pe);
  }
  if (fds.empty() || poll(fds.data(), fds.size(), 0) <= 0) return;
  for (size_t i = 0; i < fds.size(); i++) {
    if (!fds[i].revents) continue;
    u32 running = u32(pgas::Phase::running); // it may have left in an orderly way just before
    pgas::Status *status = s.status(pes[i]);
    if (pgas::arch::compare_exchange(&status->phase, running, u32(pgas::Phase::failed)))
      snprintf(status->reason, sizeof status->reason, "its process (pid %u) died", status->pid);
  }
}

} // namespace

std::vector<i64> failed_peers(const pgas::Team *team, bool poll_processes, bool finalized) {
  const pgas::State &s = g.state;
  std::vector<i64> found;
  if (poll_processes) find_deaths();
  const i64 n = team ? team->size : s.n_pes;
  for (i64 i = 0; i < n; i++) {
    const i64 pe = team ? team->members[i] : i;
    if (pe == s.pe || !s.areas[pe]) continue;
    const u32 phase = pgas::arch::load_acquire(&s.status(pe)->phase);
    if (phase == u32(pgas::Phase::failed) || (finalized && phase == u32(pgas::Phase::finalized))) found.push_back(pe);
  }
  return found;
}

} // namespace native
