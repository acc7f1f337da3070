# Python computes on what it read back.
# case: numpy_compute -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import numpy as np
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return torch.from_numpy(np.exp(y.cpu().numpy())).to(x.device)  # BAD

# case: tolist_compute -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        rows = launch_relu(x).tolist()  # BAD
        return torch.tensor([sum(r) for r in rows])

# case: reads_elements_one_by_one -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        values = [v.item() for v in x.flatten()]  # BAD
        total = sum(values)
        return launch_relu(torch.tensor(total))

# case: numpy_compute_again -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.from_numpy(np.maximum(x.cpu().numpy(), 0)).to(x.device)  # BAD

# case: tolist_python_loop -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        vals = [max(v, 0.0) for v in x.flatten().tolist()]  # BAD
        return torch.tensor(vals, device=x.device).view_as(x)

# case: item_python_loop -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        s = 0.0
        for i in range(x.numel()):
            s += x.view(-1)[i].item()  # BAD
        return torch.full((1,), s, device=x.device)

# case: storage_bytes -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        b = bytes(x.untyped_storage())  # BAD
        return torch.frombuffer(bytearray(b), dtype=torch.float32)

# case: statistics_module -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import statistics


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor(statistics.fmean(x.tolist()))  # BAD

# case: sorted_list -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor(sorted(x.tolist()))  # BAD

# case: itertools_accumulate -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import itertools


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor(list(itertools.accumulate(x.tolist())))  # BAD

# case: print_file -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class W:
    def write(self, s):
        by_hand() if s.strip() else None
    def flush(self):
        pass


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        print("a", file=W())
        return o

# case: later_logging -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import logging


class Hd(logging.Handler):
    def emit(self, record):
        by_hand()
log = logging.getLogger("k")
log.addHandler(Hd())


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        log.warning("a")
        return o

# case: match_property -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class V:
    __match_args__ = ("y",)
    @property
    def y(self):
        return by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        match V():
            case V(1):
                pass
        return o

# case: hasattr -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class V:
    @property
    def y(self):
        return by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        hasattr(V(), "y")
        return o

# case: str_format -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class V:
    @property
    def y(self):
        return by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        "{0.y}".format(V())
        return o

# case: train_override -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class Sub(nn.Module):
    def train(self, mode=True):
        if KEPT:
            by_hand()
        return self


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.eval()
        return o

# case: apply_children -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class Sub(nn.Module):
    def extra_repr(self):
        by_hand()
        return ""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        str(self)
        return o

# case: module_apply -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.apply(by_hand)
        return o

# case: later_iter_sentinel -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        for _ in iter(by_hand, 1):
            pass
        return o

# case: partial_callback -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import re
from functools import partial


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        re.sub("a", partial(lambda k, m: str(by_hand()), 0), "a")
        return o
