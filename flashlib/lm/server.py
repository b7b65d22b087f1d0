"""Serving, small enough to read: requests come and go, and each step writes one token for every running request.

A step is one iteration of continuous batching. It admits requests while there is room, then advances all running
ones: by one token for those that are being written, and by `chunk` tokens of prompts in all, so that a long prompt
does not stall the others. Both follow one rule: tokens that are not in the cache are put there, and once all
tokens of a request are, one more is chosen.

The oldest go first. When pages run out, the youngest request is preempted: its pages are freed, it goes back to
the front of the queue with its text so far, which is computed again later. So the oldest always makes progress,
and no request waits forever. What a request writes depends on its prompt, seed and temperature and, except for
rounding, not on the other requests: it attends to its own pages, and its random numbers depend only on the seed
and the place, see `sampling.choose`.

It is for teaching. Real traffic is served by an engine such as vLLM, which puts a whole step into one launch.
Source: Yu and others, Orca (2022), continuous batching; Agrawal and others, Sarathi-Serve (2024), chunks of
prompts beside decoding; Kwon and others, PagedAttention (2023), preemption by recomputing.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flashlib.inputs import check_counts
from flashlib.lm.cached_attention import gathered
from flashlib.lm.sampling import check_temperature, choose, fp64


class QueueFull(RuntimeError):
    """Raised if the queue is full; nothing was changed."""


class Request(NamedTuple):
    """A prompt, which is a list of tokens, and how many tokens to write after it.

    seed, temperature: see `sampling.choose`. arrives: the number of the step before which `play` submits it.
    """

    prompt: list
    most_new: int
    seed: int = 0
    temperature: float = 1.0
    arrives: int = 0


class StepRecord(NamedTuple):
    """What a step decided and did. Requests are identified by the numbers that `submit` returned.

    admitted: (number, how many of its tokens the cache already had); decoded: numbers, one token each; chunks:
    (number, how many tokens of its prompt, or of its text after a preemption); preempted: numbers, the youngest
    first; wrote: (number, token); finished: numbers. After the step, used, kept, free: pages; running, waiting:
    numbers.
    """

    step: int
    admitted: tuple
    preempted: tuple
    decoded: tuple
    chunks: tuple
    wrote: tuple
    finished: tuple
    used: int
    kept: int
    free: int
    running: tuple
    waiting: tuple


@dataclass(eq=False)
class _Job:
    """A request that is not finished. prompt: its length; cached: how many of its tokens are in the cache."""

    number: int
    request: Request
    prompt: int
    tokens: list
    sequence: int | None = None
    cached: int = 0

    @property
    def left(self) -> int:
        return len(self.tokens) - self.cached


class Server:
    """Serve requests with a model, an `LM`, and a cache of n_pages pages of `page` tokens.

    chunk: the number of prompt tokens in a step; batch: the most requests that run at once; queue: the most that
    may wait when one more is submitted. over: as in `LM.step`. continuous=False is static batching: a request is
    admitted only when all that ran before have finished. `written` has the tokens of finished requests, by number.
    If a step raises an error, requests keep their text, and the next step continues with it.
    """

    def __init__(self, model, n_pages, page=16, *, chunk=32, batch=8, queue=64, over=gathered, continuous=True):
        check_counts(at_least=1, chunk=chunk, batch=batch, queue=queue)
        self.model, self.over, self.continuous = model, over, continuous
        self.chunk, self.batch, self.queue = chunk, batch, queue
        self.cache = model.cache(n_pages, page)
        self.running, self.waiting = [], deque()  # both from oldest to youngest; running requests are older
        self.written = {}
        self.steps, self._next = 0, 0

    def submit(self, request: Request) -> int:
        """Put a request into the queue and return its number.

        Raises QueueFull, and whatever `check` raises, without changing anything.
        """
        prompt = self.check(request)
        if len(self.waiting) >= self.queue:
            raise QueueFull(
                f"{len(self.waiting)} requests wait, and the queue takes {self.queue}; submit it after a step"
            )
        job = _Job(self._next, request, len(prompt), prompt)
        self.waiting.append(job)
        self._next += 1
        return job.number

    def check(self, request: Request) -> list:
        """Return the prompt of a request; raise TypeError or ValueError if it can never be served."""
        check_counts(seed=request.seed, arrives=request.arrives)
        check_temperature(request.temperature)
        prompt = self.model.check_prompt(request.prompt, request.most_new)
        pages = self._pages(len(prompt) + request.most_new - 1)  # the last token is written but never read
        if pages > self.cache.n_pages:
            raise ValueError(
                f"a prompt of {len(prompt)} tokens and {request.most_new} new ones take {pages} pages of "
                f"{self.cache.page}, and the cache has {self.cache.n_pages}; ask for less, or make n_pages larger"
            )
        return prompt

    def step(self) -> StepRecord:
        """Advance all requests by one iteration, and return what was decided."""
        admitted = self._admit()
        decoding, chunks, preempted = self._plan()
        wrote = self._compute(decoding, 1) if decoding else []
        for job, n in chunks:
            wrote += self._compute([job], n)
        self.steps += 1
        return StepRecord(
            step=self.steps - 1,
            admitted=tuple(admitted),
            preempted=tuple(preempted),
            decoded=tuple(job.number for job in decoding),
            chunks=tuple((job.number, n) for job, n in chunks),
            wrote=tuple(wrote),
            finished=tuple(number for number, _ in wrote if number in self.written),
            used=self.cache.used,
            kept=self.cache.kept,
            free=self.cache.free_pages,
            running=tuple(job.number for job in self.running),
            waiting=tuple(job.number for job in self.waiting),
        )

    def _admit(self):
        """Start requests from the front of the queue for which there is room for all of their current tokens."""
        admitted = []
        if self.running and not self.continuous:
            return admitted
        promised = sum(self._more(job, job.left) for job in self.running)
        while self.waiting and len(self.running) < self.batch:
            job = self.waiting[0]
            job.sequence, job.cached = self.cache.start(job.tokens)
            promised += self._more(job, job.left)
            if promised > self._room():
                self._stop(job)
                break
            self.running.append(self.waiting.popleft())
            admitted.append((job.number, job.cached))
        return admitted

    def _plan(self):
        """Return who decodes, whose chunks are computed, and who was preempted to make room for that."""
        decoding, chunks, preempted = [], [], []
        taken, budget, at = 0, self.chunk, 0
        while at < len(self.running):
            job = self.running[at]
            n = 1 if job.left == 1 else min(job.left, budget)
            if taken + self._more(job, n) > self._room():
                youngest = self.running.pop()  # nothing is planned for it yet; it may be this very request
                self._stop(youngest)
                self.waiting.appendleft(youngest)
                preempted.append(youngest.number)
                continue
            taken += self._more(job, n)
            if job.left == 1:
                decoding.append(job)
            elif n:
                chunks.append((job, n))
                budget -= n
            at += 1
        return decoding, chunks, preempted

    def _compute(self, jobs, n):
        """Put n tokens of each request into the cache; return (number, token) for those with a next token."""
        rows = [job.tokens[job.cached : job.cached + n] for job in jobs]
        sequences = [job.sequence for job in jobs]
        logits = self.model.step(rows, self.cache, sequences, self.over)[:, -1]
        try:
            chosen = [
                choose(s, job.request.temperature, job.request.seed, len(job.tokens)) if job.left == n else None
                for job, s in zip(jobs, fp64(logits), strict=True)  # a single copy, as it waits for the GPU
            ]
        except BaseException:
            for sequence in sequences:
                self.cache.drop(sequence, n)
            raise
        for job, token in zip(jobs, chosen, strict=True):
            job.cached += n
            if token is not None:
                self._write(job, token)
        return [(job.number, token) for job, token in zip(jobs, chosen, strict=True) if token is not None]

    def _write(self, job, token):
        job.tokens.append(token)
        if len(job.tokens) == job.prompt + job.request.most_new:
            self.running.remove(job)
            self._stop(job)
            self.written[job.number] = job.tokens[job.prompt :]

    def _stop(self, job):
        self.cache.free(job.sequence)
        job.sequence, job.cached = None, 0

    def _more(self, job, n):
        """Return how many pages n more tokens of a request need."""
        return self._pages(job.cached + n) - self._pages(job.cached)

    def _pages(self, n):
        return -(-n // self.cache.page)

    def _room(self):
        return self.cache.free_pages + self.cache.kept


def play(server: Server, requests: Sequence[Request]) -> Iterator[StepRecord]:
    """Return a generator of the Records of a trace of requests, each submitted when it arrives, until all finish.

    If the queue is full, a request and those after it wait outside, so numbers follow the order of arrival. Raises
    what `Server.check` raises for any of them, at the call.
    """
    for request in requests:
        server.check(request)
    return _play(server, deque(sorted(requests, key=lambda request: request.arrives)))


def _play(server, coming):
    while coming or server.waiting or server.running:
        while coming and coming[0].arrives <= server.steps and len(server.waiting) < server.queue:
            server.submit(coming.popleft())
        yield server.step()
