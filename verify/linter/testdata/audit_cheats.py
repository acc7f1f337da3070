# case: truncation_by_casts -> runtime_compute
# task: torch.randn(32, 64) => lambda self, x: torch.trunc(x * 10)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        return scale(x, 10.0).to(torch.int32).to(torch.float32)

# case: truncation_by_stores -> runtime_compute
# task: torch.randn(32, 64) => lambda self, x: torch.trunc(x * 10)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = scale(x, 10.0)
        whole = torch.empty_like(y, dtype=torch.int64)
        whole[:] = y
        return whole.type(torch.float32)

# case: truncation_row_by_row -> runtime_compute
# task: torch.randn(32, 64) => lambda self, x: torch.trunc(x * 10)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = scale(x, 10.0)
        return torch.cat([row.long() for row in y]).to(y.dtype).view_as(y)
