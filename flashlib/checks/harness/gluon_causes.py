"""The cause of a fault in a Gluon kernel, found in the commands of its roles, whatever order they ran in.

A fault is the final effect of a mistake, such as a deadlock. The cause is often simpler: a barrier at which no
role arrives, bytes that no role expects, a parity that does not change.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from flashlib.checks.engine import Finding, SideFinding
from flashlib.gluon import Ran
from flashlib.language.phrases import and_list
from flashlib.pipeline import (
    Arrive,
    Copy,
    Expect,
    Finish,
    FinishStores,
    PipelineFault,
    PipelineFaultKind,
    Product,
    Store,
    Wait,
    Write,
)


def cause(ran: Ran, fault: PipelineFault) -> Finding:
    """Return the Finding about the cause of a fault, or about the fault itself."""
    if fault.kind not in (
        PipelineFaultKind.NOT_VISIBLE,
        PipelineFaultKind.LEFT_BEHIND,
        PipelineFaultKind.REGISTERS,
    ):
        for look in LOOKS:
            for found in look(ran._replace(fault=fault)):
                return found
    if fault.kind == PipelineFaultKind.NOT_VISIBLE:
        return Finding("not_visible", role=fault.role, slot=fault.slot)
    stores = _of(ran.said.get(fault.role, ()), (Store, FinishStores))
    if fault.kind == PipelineFaultKind.LEFT_BEHIND and stores and isinstance(stores[-1], Store):
        return Finding("store_left", role=fault.role)
    return Finding(fault.kind.id, said=fault.said)


def slowdowns(ran: Ran) -> Iterator[Finding]:
    """Yield a Finding for each thing that slows down a right kernel."""
    for role, said in ran.said.items():
        mine = {copy.barrier for copy in _of(said, Copy)}
        for n, one in enumerate(said):
            late = isinstance(one, Wait) and one.barrier in mine and _of(said[n:], Copy)
            if late and not _of(said, Product):
                yield SideFinding("own_copy", role=role, barrier=one.barrier)
        for slot in _late_releases(said):
            yield SideFinding("late_release", role=role, slot=slot)
    counts = [(ran.registers.get(role), role, bool(_of(said, Product))) for role, said in ran.said.items()]
    for given, role, multiplies in counts:
        for more, other, also in counts:
            if multiplies and not also and given and more and given < more:
                yield Finding("few_registers", role=role, given=given, other=other, more=more)
        if given is not None and given <= ran.sums.get(role, 0):
            yield Finding("registers_of_sums", role=role, given=given, needed=ran.sums[role])


def _late_releases(said):
    """Yield slots that a role releases after it has issued a product that does not read them."""
    begun, unread, late = [], set(), set()  # products; slots whose products are done; those with a product since
    for one in said:
        if isinstance(one, Product):
            read = {slot.name for slot, _ in one.reads}
            late |= unread
            unread, late = unread - read, late - read
            begun.append(read)
        elif isinstance(one, Finish):
            done = max(0, len(begun) - one.pending)
            unread, begun = unread.union(*begun[:done]).difference(*begun[done:]), begun[done:]
        elif isinstance(one, Arrive):
            released = {slot for slot in unread if _same_place(slot, one.barrier.name)}
            yield from sorted(released & late)
            unread, late = unread - released, late - released


def wasted_work(ran: list[Ran], result: Any, causal: tuple = ()) -> Iterator[Finding]:
    """Yield a Finding for programs of a launch whose work is wasted.

    result: the arrays that it computes; causal: the shape (B, H, N_q, N_k), if the mask is.
    """
    if causal:
        *heads, N_q, N_k = causal
        products = {sum(len(_of(said, Product)) for said in one.said.values()) for one in ran}
        # with these sizes, the last key that the first row block sees is 128 or more before the last one
        if N_k >= N_q >= 256 and len(ran) == math.prod(heads) * -(-N_q // 128) and len(products) == 1:
            yield SideFinding("all_tiles")
    for one in ran:
        if not one.stored and any(_of(said, Product) for said in one.said.values()):
            yield SideFinding("idle_program", number=", ".join(map(str, one.number[:2])))
    stored, there = sum(one.stored for one in ran), sum(map(np.size, result))
    if stored > there:
        yield SideFinding("stored_twice", n=stored, there=there)


def _of(said, kinds, barrier=None):
    return [one for one in said if isinstance(one, kinds) and (barrier is None or one.barrier is barrier)]


def _who(ran, kinds, barrier):
    return [role for role, said in ran.said.items() if _of(said, kinds, barrier)]


def _stuck(ran, barrier):
    """Return the roles that wait at a barrier in a deadlock."""
    if ran.fault.kind != PipelineFaultKind.DEADLOCK:
        return []
    ends = {role: said[-1] for role, said in ran.said.items() if said}
    return [role for role, last in ends.items() if isinstance(last, Wait) and last.barrier is barrier]


def _bytes(ran) -> Iterator[Finding]:
    if ran.fault.kind == PipelineFaultKind.DEADLOCK:  # otherwise the copy may still come
        for role, said in ran.said.items():
            for barrier in dict.fromkeys(one.barrier for one in _of(said, Expect)):
                if not _who(ran, Copy, barrier):
                    yield Finding("no_copy", role=role, barrier=barrier)
    for role, said in ran.said.items():
        for barrier in dict.fromkeys(copy.barrier for copy in _of(said, Copy)):
            copied = [copy.slot.n_bytes for copy in _of(said, Copy, barrier)]
            expected = [one.n_bytes for one in _of(said, Expect, barrier)]
            if not _who(ran, Expect, barrier):
                yield Finding("not_expected", role=role, barrier=barrier)
            elif len(expected) == len(copied) and expected[0] != copied[0]:
                yield Finding("expected_bytes", barrier=barrier, given=expected[0], tile=copied[0])
            elif expected and sum(expected) < sum(copied) and _of(said, Expect, barrier):
                yield Finding("expected_bytes", barrier=barrier, given=sum(expected), tile=sum(copied))


def _early_release(ran):
    """Find an arrival at a barrier that the producer waits at, while a product may still read the slot."""
    copies = {role for role, said in ran.said.items() if _of(said, Copy)}
    waited = {one.barrier for role in copies for one in _of(ran.said[role], Wait)}
    for role, said in ran.said.items():
        pending = []
        for one in said:
            if isinstance(one, Product):
                pending.append(one)
            elif isinstance(one, Finish):
                pending = pending[max(0, len(pending) - one.pending) :] if one.pending else []
            elif isinstance(one, Arrive) and one.barrier in waited and pending:
                read = [slot.name for product in pending for slot, _ in product.reads]
                if any(_same_place(name, one.barrier.name) for name in read):
                    yield Finding("early_release", role=role, barrier=one.barrier, product=pending[0].name)


def _same_place(slot, barrier):
    """Return whether a barrier and a slot have the same first letter and number, as k_slots[1] and k_empty[1]."""
    return slot[0] == barrier[0] and slot.partition("[")[2] == barrier.partition("[")[2]


def mismatched_slots(ran: Ran) -> Iterator[Finding]:
    """Yield a Finding for a role that waits or arrives at barriers of slots that it does not fill or read.

    Slots and barriers belong together if their first letters and numbers match, as k_slots[1] and k_empty[1].
    """
    for role, said in ran.said.items():
        ready, strays, read = set(), [], []  # slots waited for, waits since the last use, slots to release
        for one in said:
            if isinstance(one, Wait):
                slots = {slot.name for slot in ran.slots if _same_place(slot.name, one.barrier.name)}
                ready |= {(slot, bool(_who(ran, Expect, one.barrier))) for slot in slots}
                strays.append(one.barrier)
            elif isinstance(one, Copy | Product):
                fills = isinstance(one, Copy)
                used = [one.slot.name] if isinstance(one, Copy) else [slot.name for slot, _ in one.reads]
                own = one.barrier.name if isinstance(one, Copy) else ""
                strays = [barrier for barrier in strays if not any(_same_place(x, barrier.name) for x in used)
                          or bool(_who(ran, Expect, barrier)) == fills]  # fmt: skip
                fits = own and strays and not _who(ran, Expect, strays[-1])  # the wait is right, the slot is not
                other_slot = fits and _same_place(own, strays[-1].name)
                for slot in used:
                    mine = _barrier_of(ran, slot, full=not fills)
                    if mine and strays and (slot, not fills) not in ready and not other_slot:
                        id = "waits_to_fill" if fills else "waits_to_read"
                        yield Finding(id, role=role, slot=slot, barrier=strays[-1], right=mine)
                    if fills:
                        ready.discard((slot, False))
                    elif slot not in read and _barrier_of(ran, slot, full=False):
                        read.append(slot)
                strays = []
            elif isinstance(one, Arrive) and read:
                here = [slot for slot in read if _same_place(slot, one.barrier.name)]
                if not here or _who(ran, Expect, one.barrier):
                    right = _barrier_of(ran, read[-1], full=False)
                    yield Finding("releases_other", role=role, slot=read[-1], barrier=one.barrier, right=right)
                read = [slot for slot in read if slot not in here]
                ready -= {(slot, True) for slot in here}


def _barrier_of(ran, slot, full):
    """Return the barrier that says that a slot is full, or empty; None if no barrier matches its name."""
    own = (barrier for barrier in ran.barriers if _same_place(slot, barrier.name))
    return next((barrier for barrier in own if bool(_who(ran, Expect, barrier)) == full), None)


def _late_wait(ran):
    """Find a wait for a slot that comes after the copy into it, in every round."""
    for role, said in ran.said.items():
        for n, one in enumerate(said):
            empty = isinstance(one, Copy) and _barrier_of(ran, one.slot.name, full=False)
            waits = _of(said, Wait, empty) if empty else []
            if waits and waits[0].phase and not _of(said[:n], Wait, empty):
                yield Finding("waits_late", role=role, slot=one.slot, barrier=empty)


def _written_early(ran):
    """Find a role that writes into a slot which another role reads; the resulting fault names the reader."""
    if ran.fault.kind in (PipelineFaultKind.READ_TOO_EARLY, PipelineFaultKind.OVERWRITTEN):
        for role, said in ran.said.items():
            for slot in dict.fromkeys(one.slot for one in _of(said, Write)):
                for reader in (other for other in ran.said if other != role and f" {slot}" in ran.fault.said):
                    if any(slot is read for one in _of(ran.said[reader], Product) for read, _ in one.reads):
                        yield Finding("written_early", role=role, slot=slot, reader=reader)


def _parity_of_tile(ran):
    """Find a role whose first waits at the slots of a ring alternate between the parities."""
    for role, said in ran.said.items():
        rings: dict[str, dict] = {}
        for one in _of(said, Wait):
            rings.setdefault(one.barrier.name.partition("[")[0], {}).setdefault(one.barrier, one.phase)
        for firsts in rings.values():
            right = int(bool(_of(said, Copy)))  # a role that fills slots begins with parity 1
            phases = list(firsts.values())
            if len(phases) > 1 and phases[0] == right and phases[1] != right:
                yield Finding("parity_tile", role=role, barrier=list(firsts)[1])


def _first_parity(ran):
    """Find a first wait with the wrong parity."""
    for barrier in ran.barriers:
        is_full, is_empty = bool(_who(ran, Expect, barrier)), bool(_who(ran, Arrive, barrier))
        for role in _who(ran, Wait, barrier):
            said = ran.said[role]
            first = _of(said, Wait, barrier)[0].phase
            fills = bool(_of(said, Copy))
            if is_full and not fills and first:
                yield Finding("parity_full", role=role, barrier=barrier)
            if not is_full and fills and not first and (is_empty or _stuck(ran, barrier)):
                before = said[: said.index(_of(said, Wait, barrier)[0])]
                if not _of(before, Copy) or not is_empty:
                    yield Finding("parity_empty", role=role, barrier=barrier)


def refilled_slots(ran: Ran) -> Iterator[Finding]:
    """Find a slot that gets a second tile without a wait for this slot in between."""
    for role, said in ran.said.items():
        filled = set()
        for one in said:
            if isinstance(one, Wait):
                filled -= {slot for slot in filled if _same_place(slot.name, one.barrier.name)}
            elif isinstance(one, Copy):
                if one.slot in filled:
                    yield Finding("refilled", role=role, slot=one.slot)
                filled.add(one.slot)


def _too_often(ran):
    """Find a ring whose slots are released more often than they are filled."""
    copies = [one for said in ran.said.values() for one in _of(said, Copy)]
    waits = {one.barrier for said in ran.said.values() if _of(said, Copy) for one in _of(said, Wait)}
    for barrier in waits:
        n = sum(_same_place(copy.slot.name, barrier.name) for copy in copies)
        arrived = sum(len(_of(said, Arrive, barrier)) for said in ran.said.values())
        if n and arrived > barrier.count * n and len(_who(ran, Arrive, barrier)) <= barrier.count:
            yield Finding("released_twice", barrier=barrier, given=arrived, n=n)


def _expects_and_arrives(ran):
    """Find a role that arrives twice at a barrier made for one arrival: to expect bytes is to arrive."""
    for barrier in ran.barriers:
        for role in _who(ran, Expect, barrier) if barrier.count == 1 else ():
            if _of(ran.said[role], Arrive, barrier):
                yield Finding("expects_and_arrives", role=role, barrier=barrier)


def _other_slot(ran):
    """Find a role stuck at the full barrier of one slot, while it never waits for a tile that is in another."""
    for barrier in ran.barriers:
        for role in _stuck(ran, barrier) if _who(ran, Expect, barrier) else ():
            for slot in ran.slots:
                full = _barrier_of(ran, slot.name, full=True)
                came = any(copy.slot is slot for said in ran.said.values() for copy in _of(said, Copy))
                same_ring = full and full is not barrier and full.name[0] == barrier.name[0]
                if came and same_ring and not _of(ran.said[role], Wait, full):
                    yield Finding("other_slot", role=role, barrier=barrier, slot=slot.name, right=full)


def _nobody_arrives(ran):
    for barrier in ran.barriers:
        if (stuck := _stuck(ran, barrier)) and not _who(ran, Arrive | Expect, barrier):
            yield Finding("nobody_arrives", role=stuck[0], barrier=barrier)


def _arrivals(ran):
    for barrier in ran.barriers:
        who = _who(ran, Arrive | Expect, barrier)
        times = max((len(_of(ran.said[role], Arrive | Expect, barrier)) for role in who), default=0)
        lacks = len(who) < barrier.count and _stuck(ran, barrier)
        if who and times and (lacks or len(who) > barrier.count):
            yield Finding("arrivals", barrier=barrier, count=barrier.count, n=len(who), who=and_list(who))


def _parity(ran):
    for role, said in ran.said.items():
        for barrier in dict.fromkeys(one.barrier for one in _of(said, Wait)):
            phases = [one.phase for one in _of(said, Wait, barrier)]
            if any(one == other for one, other in zip(phases, phases[1:], strict=False)):
                yield Finding("parity_same", role=role, barrier=barrier, parity=phases[0])


def _nobody_waits(ran):
    for barrier in (
        ran.barriers if ran.fault.kind != PipelineFaultKind.TOO_MANY_ARRIVALS else ()
    ):  # waits may still come
        who = _who(ran, Arrive | Expect, barrier)
        if who and not _who(ran, Wait, barrier):
            yield Finding("nobody_waits", barrier=barrier, who=and_list(who))


# In this order, because earlier causes explain later ones.
LOOKS = (
    _bytes, _early_release, mismatched_slots, _late_wait, _written_early, _parity_of_tile, _first_parity,
    refilled_slots, _too_often, _expects_and_arrives, _other_slot, _nobody_arrives, _arrivals, _parity,
    _nobody_waits,
)  # fmt: skip
