// SPDX-License-Identifier: Apache-2.0
// Waiting on a GPU: how often to look, when to give up, and what to leave for the host to read.
#pragma once

namespace pgas {
namespace arch {

namespace detail {

constexpr unsigned eager_looks = 128;                // without a pause between them
constexpr unsigned shortest_sleep_ns = 32, longest_sleep_ns = 512;
constexpr unsigned long long check_every_ns = 500000; // the host's memory is far away

// Takes a record and fills it in. Lanes of a warp that end together leave one record.
PGAS_CALL void report(KernelReport *to, EndReason reason, const WaitFacts &facts) {
  if (!to) return;
  const unsigned active = __activemask(), lane = thread_number() & 31;
  if (active & ((1u << lane) - 1)) return;
  const unsigned i = arch::fetch_add(&to->count, 1u);
  if (i >= report_capacity) return;
  KernelRecord *r = &to->records[i];
  r->reason = unsigned(reason);
  r->block = block_number();
  r->thread = thread_number();
  r->team = facts.team;
  r->compare = facts.compare;
  r->width = facts.width;
  r->address = reinterpret_cast<size_t>(facts.address);
  r->expected = facts.expected;
  r->seen = facts.seen;
  r->waited_ns = facts.started ? now_ns() - facts.started : 0;
  unsigned n = 0;
  for (; n + 1 < sizeof r->operation && facts.operation[n]; n++) r->operation[n] = facts.operation[n];
  r->operation[n] = 0;
  arch::store_release(&r->complete, 1u);
}

struct Patience {
  unsigned looks = 0, sleep_ns = shortest_sleep_ns;
  unsigned long long checked = 0;
};

// The state's type is a template argument because it is complete only further down.
template <class S> PGAS_CALL bool rest(const S *state, Patience &p, WaitFacts &facts) {
  const unsigned long long now = now_ns();
  if (!facts.started) facts.started = p.checked = now;
  if (now - p.checked >= check_every_ns) {
    p.checked = now;
    const WaitLimits limits = state->limits;
    EndReason reason = EndReason::none;
    if (limits.abort_word && arch::load_relaxed(limits.abort_word)) reason = EndReason::aborted;
    else if (limits.limit_ns && now - facts.started > limits.limit_ns) reason = EndReason::limit;
    else if (limits.report && arch::load_relaxed(&limits.report->count)) reason = EndReason::aborted;
    if (reason != EndReason::none) {
      report(limits.report, reason, facts);
      return false;
    }
  }
  arch::sleep(p.sleep_ns);
  if (p.sleep_ns < longest_sleep_ns) p.sleep_ns *= 2;
  return true;
}

template <class S> PGAS_FN void report_text(const S *state, EndReason reason, const char *what) {
  report(state->limits.report, reason, WaitFacts{what, nullptr, 0, 0, 0, 0, -1, 0});
}

} // namespace detail

// Between two looks at a variable. False when the wait must end: it has been reported, and the thread has to leave.
struct Idle {
  detail::Patience patience;
  PGAS_FN bool operator()(WaitFacts &facts) {
    if (++patience.looks <= detail::eager_looks) return true;
    return detail::rest(bound_state(), patience, facts);
  }
};

// Something that can't go on, for the host to raise. The thread still has to leave.
PGAS_FN void failed(const char *what) { detail::report_text(bound_state(), EndReason::failed, what); }

// Checks of arguments are for debugging: a register and a branch at every access are too much otherwise.
PGAS_FN void check(bool holds, const char *what) {
#ifdef PGAS_DEBUG
  if (!holds) {
    detail::report_text(bound_state(), EndReason::argument, what);
    leave();
  }
#endif
}

} // namespace arch
} // namespace pgas
