"""Names for what figures take and return, for use in their signatures.

Altair and IPython are imported when a figure is drawn, so their classes can't be named here.
"""

from collections.abc import Sequence

from torch import Tensor

Numbers = object  # a tensor, an array or nested lists: whatever `numbers.to_array` reads
Labels = Sequence[object] | str | Tensor  # one for each row, column or token
Title = str | Sequence[str]  # or its lines
Chart = object  # an Altair chart
Page = object  # an IPython HTML object
