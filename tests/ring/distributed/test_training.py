"""Training over ranks: the small GPT of The backward kernels has the losses and gradients of one process."""

import functools
import itertools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

from flashlib.lm.model import LM, Config  # noqa: E402
from flashlib.lm.rotary import rotate  # noqa: E402
from flashlib.ring.distributed import all_gather, ring, training, two_d, ulysses  # noqa: E402
from tests.ring.distributed import on_ranks  # noqa: E402

CONFIG = Config(vocab=31, layers=2, width=24, heads=3, kv_heads=1, context=64)
N = 45
RATE = 0.5
STEPS = 2


def logits(model, tokens, positions, attention):
    """Return the logits of tokens at these positions."""
    cos, sin = (X[positions] for X in model.angles)

    def attend(layer, Q, K, V):
        return attention(rotate(Q, cos, sin), rotate(K, cos, sin), V, causal=True)

    return model.logits(tokens, attend)


def losses_of(model, tokens, labels, positions, attention):
    found = logits(model, tokens, positions, attention).flatten(0, 1)
    return cross_entropy(found, labels.flatten(), reduction="none", ignore_index=training.IGNORED)


def texts():
    return torch.randint(CONFIG.vocab, (4, N), generator=torch.Generator().manual_seed(1))


def of_one_process():
    """Return the losses of two SGD steps in one process, and the gradients of the first."""
    model = LM(CONFIG).double()
    tokens = texts()
    labels = torch.cat([tokens[:, 1:], torch.full((4, 1), training.IGNORED)], dim=1)
    found, grads = [], None
    for _ in range(STEPS):
        each = losses_of(model, tokens, labels, torch.arange(N), model.attention)
        loss = each.sum() / (labels != training.IGNORED).sum()
        model.zero_grad()
        loss.backward()
        grads = grads or [p.grad.clone() for p in model.parameters()]
        with torch.no_grad():
            [p.sub_(RATE * p.grad) for p in model.parameters()]
        found.append(loss.item())
    return found, grads


def by_ranks(way, layout, heads=1, **options):
    """Return the same over four ranks, whose gradients are summed."""
    model, P = LM(CONFIG).double(), dist.get_world_size()
    cut = {"layout": layout, "heads": heads}
    tokens, at = training.split(texts(), **cut), training.positions(N, **cut)
    labels = training.labels(tokens, **cut)

    def attention(Q, K, V, causal):
        return way.attention(Q, K, V, causal=causal, layout=layout, **options).O

    found, grads = [], None
    for _ in range(STEPS):
        each = losses_of(model, tokens, labels, at, attention)
        loss = training.mean(each, labels.flatten() != training.IGNORED, averaged_over=P)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= P  # as DDP does
        grads = grads or [p.grad.clone() for p in model.parameters()]
        with torch.no_grad():
            [p.sub_(RATE * p.grad) for p in model.parameters()]
        found.append(loss.item())
    return found, grads


def on_a_mesh(sharded):
    """Return the losses on a 2 x 2 mesh: one axis splits the texts, the other is a ring.

    The model is sharded over both axes, or gradients are summed over both.
    """
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("texts", "ring"))
    model, group = LM(CONFIG).double(), mesh["ring"]
    half = texts()[2 * mesh.get_local_rank("texts") :][:2]
    tokens, at = training.split(half, group=group), training.positions(N, group=group)
    labels = training.labels(tokens, group=group)

    def attention(Q, K, V, causal):
        return ring.attention(Q, K, V, causal=causal, group=group).O

    model.forward = functools.partial(_forward, model, attention)
    if sharded:
        from torch.distributed.fsdp import fully_shard  # imported before the ranks were made

        fully_shard(model, mesh=init_device_mesh("cpu", (4,)))
    found = []
    for _ in range(STEPS):
        model.zero_grad()
        result = model(tokens, at).flatten(0, 1)
        each = cross_entropy(result, labels.flatten(), reduction="none", ignore_index=training.IGNORED)
        loss = training.mean(each, labels.flatten() != training.IGNORED, averaged_over=4)
        loss.backward()
        if not sharded:
            [dist.all_reduce(p.grad) for p in model.parameters()]
            [p.grad.div_(4) for p in model.parameters()]
        with torch.no_grad():
            [p.sub_(RATE * p.grad) for p in model.parameters()]
        found.append(loss.item())
    return found


def _forward(model, attention, tokens, at):
    return logits(model, tokens, at, attention)


def with_other_options():
    """Return labels with another `ignored`, and the mean of all losses with its gradient."""
    tokens = training.split(texts(), layout="striped")
    labels = training.join(training.labels(tokens, layout="striped", ignored=-7), layout="striped")
    losses = tokens.double().requires_grad_()
    mean = training.mean(losses)
    mean.backward()
    return labels.tolist(), mean.item(), losses.grad.unique().tolist()


def unlike():
    """Return the error of `join` for parts that differ in another axis."""
    try:
        training.join(torch.ones(1, 2, 3 + (dist.get_rank() == 2)))
    except ValueError as error:
        return str(error)


def everything():
    """Return the results of one process, and those of each way over ranks."""
    mesh = init_device_mesh("cpu", (2, 2))
    ways = {
        "ring": by_ranks(ring, "zigzag"),
        "all_gather": by_ranks(all_gather, "striped"),
        "ulysses": by_ranks(ulysses, "contiguous"),
        "two_d": by_ranks(two_d, "zigzag", heads=2, group=mesh),
    }
    X, again = torch.arange(6 * N).reshape(2, N, 3), {}
    for layout, heads in itertools.product(("zigzag", "striped", "contiguous"), (1, 2, 4)):
        cut = {"layout": layout, "heads": heads, "dim": heads // 2}
        whole = X.movedim(1, cut["dim"])
        again[layout, heads] = torch.equal(training.join(training.split(whole, **cut), **cut), whole)
    return of_one_process(), ways, on_a_mesh(sharded=False), again, with_other_options(), unlike()


@functools.cache
def ranks():
    return on_ranks.run(everything)


def close(found, known):
    torch.testing.assert_close(torch.tensor(found).double(), torch.tensor(known).double(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("way", ["ring", "all_gather", "ulysses", "two_d"])
def test_losses_and_gradients_are_those_of_one_process(way):
    for (losses, grads), ways, *_ in ranks():
        found, found_grads = ways[way]
        assert losses[-1] < losses[0]
        close(found, losses)
        for X, Y in zip(found_grads, grads, strict=True):
            torch.testing.assert_close(X, Y, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("amount", ["few", "all"])
def test_a_mesh_of_texts_and_rings_sums_gradients_over_both_axes_and_may_shard_the_model(amount):
    if amount == "few":
        found = [one for _, _, one, *_ in ranks()]
    else:
        found = on_ranks.run(on_a_mesh, True, importing=["torch.distributed.fsdp"])
    for losses in found:
        close(losses, of_one_process()[0])


def test_join_undoes_split():
    assert all(all(again.values()) for *_, again, _, _ in ranks())


def test_labels_and_means_with_other_options():
    whole, rows = texts(), torch.full((4, 1), -7)
    for *_, (labels, mean, grads), _ in ranks():
        assert labels == torch.cat([whole[:, 1:], rows], dim=1).tolist()
        assert mean == pytest.approx(whole.double().mean().item()) and grads == pytest.approx([1 / whole.numel()])


def test_parts_that_differ_in_another_axis_raise_on_every_rank():
    said = {one[-1] for one in ranks()}
    assert len(said) == 1 and "other_axes is (1, 3) on ranks 0, 1, 3 and (1, 4) on rank 2" in said.pop()
