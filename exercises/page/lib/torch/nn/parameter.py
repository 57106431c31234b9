from torch.nn.modules import Parameter  # noqa: F401
