from torch.nn.modules import Parameter
