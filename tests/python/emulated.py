"""gemmepi.linear and gemmepi.formula by the plans and kernels of an emulated GPU, on PyTorch's tensors of the CPU. run.sh tells where the emulator
is."""
import os
import sys

import torch
from torch.nn import functional as F

import gemmepi
from facts import fact, run
from gemmepi import _tensors, api, formula

torch.manual_seed(19)
BOUNDS = {torch.bfloat16: 2e-2, torch.float32: 1e-5}
CONTEXT = gemmepi.Context(0, library_path=os.environ["EMULATOR_FOLDER"].encode())


class Plan(_tensors.Plan):
    def __init__(self, kind, device, desc):
        super().__init__(kind, device, desc)
        details = api.plan_details()
        api.plan_info(self, details)
        assert details.route != api.ROUTE_HOST
        self.workspace_size = details.workspace_size

    def run(self, words):
        workspace = torch.full((self.workspace_size + 256,), 255, dtype=torch.uint8)
        if self.workspace_size:
            words[self.kind.workspace], words[self.kind.workspace + 1] = (workspace.data_ptr() + 255) // 256 * 256, self.workspace_size
        status = self.kind.run(self._as_parameter_, words, None)
        if status:
            api.fail(status)


_tensors.context_of, _tensors.Plan = lambda device: CONTEXT, Plan


def draw(*shape, dtype):
    return torch.randn(shape).to(dtype).requires_grad_()


def agree(ours, theirs, *shapes):
    for dtype, bound in BOUNDS.items():
        inputs = [draw(*shape, dtype=dtype) for shape in shapes]
        exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
        y, expected = ours(*inputs), theirs(*exact)
        dy = torch.randn_like(y)
        found = [y, *torch.autograd.grad(y, inputs, dy)]
        for one, other in zip(found, [expected, *torch.autograd.grad(expected, exact, dy.double())]):
            assert (one.double() - other).abs().max() <= bound * other.abs().max()


@fact
def layers_are_pytorchs():
    agree(lambda x, w, b: gemmepi.linear(x, w, b, "silu"), lambda x, w, b: F.silu(F.linear(x, w, b)), (33, 24), (40, 24), (40,))
    agree(lambda x, w, b: gemmepi.linear(x, w, b, "relu"), lambda x, w, b: F.relu(F.linear(x, w, b)), (2, 9, 11), (7, 11), (7,))


@fact
def formulas_with_operands_of_each_kind_are_pytorchs():
    for shape in ((48,), (17, 1), (17, 48), (2, 17, 48), (), (2, 1, 48)):
        agree(lambda a, b, z: formula("d = tanh(v * z) + z", a, b, z=z), lambda a, b, z: torch.tanh(a @ b * z) + z, (2, 17, 24), (24, 48), shape)


@fact
def gates_residuals_and_reductions_are_pytorchs():
    agree(lambda a, b, r: formula("d = left(v) * silu(right(v)) + r", a, b, r=r), lambda a, b, r: (lambda v, g: v * F.silu(g))(*(a @ b).chunk(2, -1)) + r,
          (17, 24), (24, 48), (17, 24))
    agree(lambda a, b: formula("d = 2 * v; ss = row_sum(d * d)", a, b, outputs="d, ss")[1], lambda a, b: (4 * (a @ b) ** 2).sum(1, True), (17, 24), (24, 50))
    agree(lambda a, b: formula("c = column_sum(v * v)", a, b, outputs="c"), lambda a, b: ((a @ b) ** 2).sum((0, 1)), (2, 17, 24), (24, 50))
    label = torch.randint(50, (20, 1))
    agree(lambda a, b: (lambda lse, hit: lse - hit)(*formula("lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)", a, b, label=label,
                                                             outputs="lse, hit")),
          lambda a, b: F.cross_entropy(a @ b, label[:, 0], reduction="none")[:, None], (20, 24), (24, 50))


@fact
def gradients_of_gradients_are_pytorchs():
    a, b, bias = draw(2, 9, 16, dtype=torch.float32), draw(16, 12, dtype=torch.float32), draw(12, dtype=torch.float32)
    second = []
    for y in formula("d = tanh(v + bias)", a, b, bias=bias), torch.tanh(a @ b + bias):
        da, = torch.autograd.grad((y * y).sum(), a, create_graph=True)
        second.append(torch.autograd.grad((da * da).sum(), (a, b, bias)))
    for one, other in zip(*second):
        assert (one - other).abs().max() <= 1e-4 * other.abs().max()


@fact
def dropout_has_the_same_mask_in_both_directions():
    a, b, seed = draw(2, 9, 16, dtype=torch.float32), draw(16, 12, dtype=torch.float32), torch.tensor(3)
    y = formula("d = uniform(seed, 0) >= 0.5 ? v : 0", a, b, seed=seed)
    dy = torch.randn_like(y)
    assert torch.allclose(torch.autograd.grad(y, a, dy)[0], (dy * (y != 0)) @ b.t(), atol=1e-5)


if __name__ == "__main__":
    run(sys.modules[__name__])
